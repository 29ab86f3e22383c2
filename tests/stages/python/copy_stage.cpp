// A stage for measurements of Python: source, middle or sink by its inputs, with as little work as possible.
// A source fills its plane with the frame's number, a middle copies. Settings: width, height [of the
// pipeline].
#include <memory>

#include <carousel/hash.hpp>
#include <carousel/stage.hpp>

namespace carousel::test {

class copy_stage : public carousel::stage {
public:
    description configure(const configuration& with) override {
        inputs_ = with.inputs.size();
        sink_ = with.settings->flag("sink", false);
        if (sink_) return {};
        return {.outputs = {inputs_ > 0 ? with.inputs[0].format : image_format(with.width, with.height)}};
    }
    void prepare(environment& env) override {
        if (sink_) hasher_ = std::make_unique<plane_hasher>(env);
    }
    void process(frame& f) override {
        if (sink_) return hasher_->enqueue(f, "color");
        const std::span<std::byte> out = f.output().bytes("color");
        if (inputs_ > 0)
            f.queue().copy(out.data(), f.input().bytes("color").data(), out.size());
        else
            f.queue().fill(out.data(), static_cast<u8>(f.frame_number() * 7 + 1), out.size());
    }
    [[nodiscard]] bool commits_on_host() const override { return sink_; }
    void finish(frame& f) override { hasher_->set_hash(f); }

private:
    std::size_t inputs_ = 0;
    bool sink_ = false;
    std::unique_ptr<plane_hasher> hasher_;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::copy_stage>(argc, argv); }
