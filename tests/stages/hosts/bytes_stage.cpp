// A stage for tests of links: frames of any size whose bytes are a function of their number.
//   bytes      of each frame [1048576]
//   A sink names each frame by a hash of its bytes.
//   delay_ms   the sink takes so long for each [0]

#include <chrono>
#include <memory>
#include <thread>

#include <carousel/hash.hpp>
#include <carousel/stage.hpp>
#include "device/cpu/pool.hpp"

namespace carousel::test {

class bytes_stage : public stage {
public:
    description configure(const configuration& with) override {
        source_ = with.inputs.empty();
        bytes_ = static_cast<u64>(with.settings->integer("bytes", 1 << 20, 8, i64{1} << 30));
        delay_ms_ = with.settings->integer("delay_ms", 0, 0, 60'000);
        description d;
        if (source_)
            d.outputs = {format()};
        else
            require_format(with.inputs[0].format, format(), with.stage, with.inputs[0].stage);
        return d;
    }
    void prepare(environment& env) override {
        if (!source_) hasher_ = std::make_unique<plane_hasher>(env);
    }
    void process(frame& f) override {
        if (!source_) return hasher_->enqueue(f, "data");
        u64* const out = reinterpret_cast<u64*>(f.output().plane<u8>("data").data());
        f.queue().submit([out, words = bytes_ / 8, n = f.sequence()](device::cpu::pool& pool) {
            pool.parallel_for(words, 65536, [&](u64 begin, u64 end, unsigned) {
                for (u64 k = begin; k < end; ++k) out[k] = (n << 32U) ^ (k * 0x9E3779B97F4A7C15U);
            });
        });
    }
    [[nodiscard]] bool commits_on_host() const override { return !source_; }
    void finish(frame& f) override {
        if (delay_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms_));
        hasher_->give(f);
    }

private:
    [[nodiscard]] frame_format format() const {
        return {"test.bytes", {{.name = "data", .type = element::u8_, .shape = {bytes_}}}, {}};
    }
    bool source_ = false;
    u64 bytes_ = 0;
    i64 delay_ms_ = 0;
    std::unique_ptr<plane_hasher> hasher_;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::bytes_stage>(argc, argv); }
