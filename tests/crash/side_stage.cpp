// Stages with a side input for tests with real processes. By inputs and settings it is one of
//   poses     no inputs: a source of frames of which every word tells the frame's number
//   looker    one input and a latest one: passes its input's number on, and beside it which frame of the
//   latest
//             input it had and whether that was whole in every word; a frame older than one that this life
//             has seen before ends it
//   watcher   `sink = true`, reads poses: throws at a frame that isn't whole
//   sink      `sink = true`, reads a looker: throws at a frame whose latest input was not whole, or is
//   another
//             one than the header of the looker's frame says
// Settings:
//   sink      has no output [false]
//   trusts    a watcher looks at nothing [false]
//   tear_at   of poses: from that frame on a word in the middle is another frame's [-1: never]
//   tell      of a sink: a file that gets the last latest frame that it was told of [""]
#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

#include <carousel/stage.hpp>
#include "device/cpu/pool.hpp"
#include "telemetry/ledger.hpp"

namespace carousel::test {

class side_stage final : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        const carousel::settings& s = *with.settings;
        sink_ = s.flag("sink", false);
        tear_at_ = s.integer("tear_at", -1, -1, 1'000'000);
        tell_ = s.text("tell", "");
        trusts_ = s.flag("trusts", false);
        source_ = with.inputs.empty();
        watches_ = sink_ && with.inputs.at(0).format.type == "test.pose";
        looks_ = !with.latest.empty();
        frame_format pose_format{"test.pose", {{"words", element::u64_, {words}}}, {}};
        (void)pose_format.lay_out();
        if (looks_ && !with.latest[0].format.planes.empty())
            require_format(with.latest[0].format, pose_format, with.stage, with.latest[0].stage);
        carousel::description d;
        d.takes_latest = true;
        if (sink_) return d;
        if (source_)
            d.outputs = {pose_format};
        else
            d.outputs = {{"test.looked", {{"value", element::u64_, {3}}}, {}}};
        return d;
    }

    void prepare(carousel::environment& env) override {
        for (u32 lane = 0; lane < env.in_flight(); ++lane) seen_.push_back(std::make_unique<sight>());
    }

    void process(carousel::frame& f) override {
        if (source_) return pose(f);
        if (!sink_) return look(f);
        sight* const to = seen_[f.lane()].get();
        if (watches_) {
            const u64* all = f.input().plane<const u64>("words").data();
            return f.queue().submit([=, n = f.sequence(), trusts = trusts_](device::cpu::pool&) {
                *to = {n, n, trusts || is_whole(all, n)};
            });
        }
        const auto told = f.input_latest();
        const u64 header = told.empty() ? shm::no_side_frame : told[0];
        const u64* value = f.input().plane<const u64>("value").data();
        f.queue().submit([=](device::cpu::pool&) {
            *to = {value[0], value[1], value[2] == 1 && value[1] == header};
        });
    }

    [[nodiscard]] bool commits_on_host() const override { return sink_; }
    void finish(carousel::frame& f) override {
        if (!f.void_reason().empty()) return;
        const sight& s = *seen_[f.lane()];
        if (!s.whole)
            throw std::runtime_error(
                fmt::format("frame {}: the latest frame {} is not whole", f.sequence(), s.latest));
        if (!tell_.empty() && s.latest != shm::no_side_frame) std::ofstream(tell_) << s.latest << "\n";
        f.set_hash(telemetry::hash_bytes(std::as_bytes(std::span(&s.number, 1))));
    }

private:
    static constexpr u64 words = 4096;
    struct sight {
        u64 number = 0, latest = 0;
        bool whole = false;
    };

    static bool is_whole(const u64* all, u64 n) {
        for (u64 k = 0; k < words; ++k)
            if (all[k] != n * words + k) return false;
        return true;
    }

    void pose(carousel::frame& f) const {
        u64* out = f.output().plane<u64>("words").data();
        const u64 n = f.sequence();
        const bool torn = tear_at_ >= 0 && static_cast<i64>(n) >= tear_at_;
        f.queue().submit([=](device::cpu::pool&) {
            for (u64 k = 0; k < words; ++k) out[k] = n * words + k;
            if (torn) out[words / 2] = 0;
        });
    }

    void look(carousel::frame& f) {
        const u64* in = f.input().plane<const u64>("value").data();
        u64* out = f.output().plane<u64>("value").data();
        const side_frame side = f.latest("poses");
        if (!side)
            return f.queue().submit(
                [=](device::cpu::pool&) { out[0] = *in, out[1] = shm::no_side_frame, out[2] = 1; });
        const u64 n = side.sequence();
        if (n < last_)
            throw std::runtime_error(fmt::format("the latest frame went back from {} to {}", last_, n));
        last_ = n;
        const u64* all = side.plane<const u64>("words").data();
        f.queue().submit(
            [=](device::cpu::pool&) { out[0] = *in, out[1] = n, out[2] = is_whole(all, n) ? 1 : 0; });
    }

    bool sink_ = false, source_ = false, watches_ = false, looks_ = false, trusts_ = false;
    i64 tear_at_ = -1;
    u64 last_ = 0;
    std::string tell_;
    std::vector<std::unique_ptr<sight>> seen_;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::side_stage>(argc, argv); }
