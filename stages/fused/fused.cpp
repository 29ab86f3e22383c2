#include "stages/fused/fused.hpp"

namespace carousel::stages {
namespace {

/// The frame that one half of the stage receives. The private payload is the output of the first half and the
/// input of the second half.
class half_frame : public frame {
public:
    half_frame(frame& whole, input_payload in, output_payload out) : whole_(whole), in_(in), out_(out) {}
    [[nodiscard]] const shm::frame_meta& meta() const noexcept override { return whole_.meta(); }
    [[nodiscard]] u64 ring_sequence() const noexcept override { return whole_.ring_sequence(); }
    [[nodiscard]] std::span<const std::byte> parameter_values(std::string_view type,
                                                              std::size_t bytes) const override {
        return whole_.parameter_values(type, bytes);
    }
    [[nodiscard]] frame_metadata metadata() noexcept override { return whole_.metadata(); }
    [[nodiscard]] frame_metadata input_metadata(std::size_t i) noexcept override {
        return whole_.input_metadata(i);
    }
    [[nodiscard]] device::queue& queue() noexcept override { return whole_.queue(); }
    [[nodiscard]] input_payload input(std::size_t) const noexcept override { return in_; }
    [[nodiscard]] output_payload output(std::size_t) const noexcept override { return out_; }
    [[nodiscard]] u32 lane() const noexcept override { return whole_.lane(); }
    [[nodiscard]] std::string_view tombstone_reason() const noexcept override {
        return whole_.tombstone_reason();
    }

private:
    frame& whole_;
    input_payload in_;
    output_payload out_;
};

}  // namespace

description fused::configure(const configuration& with) {
    const description first = vertex_.configure(with);
    triangles_ = first.outputs.front();
    (void)triangles_.lay_out();
    configuration second = with;
    second.inputs = {{with.stage, triangles_}};
    description whole = fragment_.configure(second);
    whole.uses = first.uses;
    return whole;
}

void fused::prepare(environment& env) {
    vertex_.prepare(env);
    fragment_.prepare(env);
    between_ = env.context().allocate(triangles_.lay_out());
}

void fused::process(frame& f) {
    const output_payload between(between_->data(), &triangles_);
    half_frame first(f, f.input(), between);
    vertex_.process(first);
    half_frame second(f, between, f.output());
    fragment_.process(second);
}

}  // namespace carousel::stages
