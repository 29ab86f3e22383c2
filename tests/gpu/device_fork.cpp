// A fork and a join for tests on a GPU, by kernels. Without inputs it is a source of frames filled with their
// number; with one input the fork, which copies it and writes its square to a second output; with two the
// join, a sink: it checks every element of both on the device, throws if they do not belong to one frame, and
// gives the ledger a hash of both. Settings:
//   overrun   frame at which the fork writes beyond its second output [-1: none]
#include <fmt/format.h>

#include <array>
#include <memory>
#include <span>
#include <stdexcept>

#include <carousel/cuda.hpp>
#include <carousel/stage.hpp>
#include "ledger/ledger.hpp"
#include "tests/gpu/device_kernels.hpp"

namespace carousel::test {

class device_fork final : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        inputs_ = with.inputs.size();
        overrun_at_ = with.settings->integer("overrun", -1, -1, 1'000'000);
        carousel::description d;
        d.device = runs_on::cuda;
        const plane value{"value", element::u64_, {elements}};
        if (inputs_ == 0) d.outputs.emplace_back("number", frame_format{"test.words", {value}, {}});
        if (inputs_ != 1) return d;
        d.outputs.emplace_back("number", frame_format{"test.words", {value}, {}});
        d.outputs.emplace_back("square", frame_format{"test.square", {value}, {}});
        return d;
    }

    void prepare(carousel::environment& env) override {
        seen_ = env.context().allocate_host(sizeof(pair_seen) * env.in_flight());
    }

    void process(carousel::frame& f) override {
        void* stream = cuda::stream(f);
        if (inputs_ == 2)
            return enqueue_compare(stream, reinterpret_cast<pair_seen*>(seen_->data()) + f.lane(),
                                   f.input(0).plane<const u64>("value").data(),
                                   f.input(1).plane<const u64>("value").data(), elements);
        u64* number = f.output().plane<u64>("value").data();
        if (inputs_ == 0) return enqueue_words(stream, number, f.frame_number(), elements);
        u64* square = f.output("square").plane<u64>("value").data();
        enqueue_squares(stream, number, square, f.input().plane<const u64>("value").data(), elements);
        f.metadata().set("fork", f.frame_number());
        if (static_cast<i64>(f.frame_number()) == overrun_at_) enqueue_words(stream, square + elements, 1, 1);
    }

    [[nodiscard]] bool commits_on_host() const override { return inputs_ == 2; }
    void finish(carousel::frame& f) override {
        const u64 n = f.frame_number();
        if (f.input_metadata(0).get<u64>("fork") != n || f.input_metadata(1).get<u64>("fork") != n)
            throw std::runtime_error(fmt::format("frame {}: its metadata are another frame's", n));
        const pair_seen& both = reinterpret_cast<const pair_seen*>(seen_->host_data())[f.lane()];
        if (both.number != n || both.square != n * n || both.others != 0)
            throw std::runtime_error(
                fmt::format("frame {}: number {}, square {}, and {} elements that differ from them", n,
                            both.number, both.square, both.others));
        const std::array<u64, 2> values{both.number, both.square};
        f.set_hash(telemetry::hash_bytes(std::as_bytes(std::span(values))));
    }

private:
    static constexpr u64 elements = 1U << 18U;  // 2 MiB: what is torn shows
    std::size_t inputs_ = 0;
    i64 overrun_at_ = -1;
    std::unique_ptr<device::mapping> seen_;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::device_fork>(argc, argv); }
