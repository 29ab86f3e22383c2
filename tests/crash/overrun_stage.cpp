// A stage with a seeded bug: it trusts a number in its input that gives the size of the used input. In frame
// `lie` that number is wrong. OVERRUN_MENDED in the environment fixes the bug.
#include <algorithm>
#include <cstdlib>

#include <carousel/cpu.hpp>
#include <carousel/stage.hpp>

namespace carousel::test {

class overrun_stage : public stage {
public:
    description configure(const configuration& with) override {
        lie_ = with.settings->integer("lie", 7, 0, 1'000'000);
        return {.outputs = {{"test.number", {{"value", element::u64_, {1}}}, {}}}, .device = runs_on::cpu};
    }
    void process(frame& f) override {
        const u64* in = f.input().plane<const u64>("value").data();
        u64* out = f.output().plane<u64>("value").data();
        // the source fills each frame with its sequence * 1000
        const u64 lie = static_cast<u64>(lie_) * 1000;
        const bool repaired = std::getenv("OVERRUN_MENDED") != nullptr;
        cpu::enqueue(f, [=](cpu::pool&) {
            const u64 count = *in == lie ? (repaired ? 1 : u64{1} << 40U) : 1;
            u64 sum = 0;
            for (u64 k = 0; k < count; ++k) sum += in[k];  // the bug
            *out = sum;
        });
    }

private:
    i64 lie_ = 0;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::overrun_stage>(argc, argv); }
