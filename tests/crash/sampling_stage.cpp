// Stages with a sampled input for tests with real processes, on the CPU and on a GPU: all that they do to a
// frame is to copy it. By inputs and settings it is one of
//   a source  no inputs: each word of its frames contains the frame's number
//   a looker  forwards its input's words and after them those of its sampled input, whose number it notes in
//             the metadata; a frame older than one that this incarnation has seen before ends it
//   a sink    `sink = true`: throws at a frame of a source that is incomplete, and at one of a looker whose
//             words of either kind are incomplete, or whose header names another sampled frame than its maker
//             has noted
// Settings:
//   sink      has no output [false]
//   trusts    a sink never throws [false]
//   tear_at   of a source: from that frame on a word in the middle is another frame's [-1: never]
//   tell      of a sink: a file that receives the last sampled frame reported to it [""]
//   slow_ms   of a sink: time that it takes for a frame [0]
//   die_at    of a looker and a sink: at that frame it throws, and reports its sampled frame; not if
//             SIDE_MENDED is set [-1: never]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <carousel/stage.hpp>
#include "ledger/ledger.hpp"

namespace carousel::test {

class sampling_stage final : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        const carousel::settings& s = *with.settings;
        sink_ = s.flag("sink", false);
        trusts_ = s.flag("trusts", false);
        tear_at_ = s.integer("tear_at", -1, -1, 1'000'000);
        report_path_ = s.text("report_to", "");
        slow_ms_ = s.integer("slow_ms", 0, 0, 1000);
        die_at_ = s.integer("die_at", -1, -1, 1'000'000);
        if (std::getenv("SIDE_MENDED") != nullptr) die_at_ = -1;
        source_ = with.inputs.empty();
        reads_sampler_ = sink_ && with.inputs.at(0).format.type == "test.looked";
        samples_ = !with.sampled.empty();
        frame_format of_source{"test.words", {{"words", element::u64_, {words}}}, {}};
        (void)of_source.lay_out();
        if (samples_) require_format(with.sampled[0].format, of_source, with.stage, with.sampled[0].stage);
        carousel::description d;
        d.accepts_sampled_inputs = true;
        if (source_) d.outputs = {of_source};
        if (!source_ && !sink_)
            d.outputs = {
                {"test.looked", {{"words", element::u64_, {words}}, {"latest", element::u64_, {words}}}, {}}};
        return d;
    }

    void prepare(carousel::environment& env) override {
        for (u32 lane = 0; lane < env.in_flight(); ++lane)
            host_.push_back(env.context().allocate_host(2 * bytes));
    }

    void process(carousel::frame& f) override {
        std::byte* const host = host_[f.lane()]->data();
        if (source_) {
            fill(reinterpret_cast<u64*>(host_[f.lane()]->host_data()), f.frame_number());
            f.queue().copy(f.output().plane<u64>("words").data(), host, bytes);
        } else if (sink_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(slow_ms_));
            if (static_cast<i64>(f.frame_number()) == die_at_)
                throw std::runtime_error("dying as configured");
            f.queue().copy(host, f.input().plane<const u64>("words").data(), bytes);
            if (reads_sampler_)
                f.queue().copy(host + bytes, f.input().plane<const u64>("latest").data(), bytes);
        } else {
            check_sampled(f);
        }
    }

    [[nodiscard]] bool commits_on_host() const override { return sink_; }
    void finish(carousel::frame& f) override {
        const auto* const seen = reinterpret_cast<const u64*>(host_[f.lane()]->host_data());
        const u64 n = f.frame_number();
        if (!trusts_ && !is_whole(seen, n)) throw std::runtime_error(fmt::format("frame {} is not whole", n));
        f.set_hash(telemetry::hash_bytes(std::as_bytes(std::span(&n, 1))));
        if (!reads_sampler_) return;
        const auto carried = f.input_sampled();
        const u64 noted = f.metadata().get<u64>("latest").value_or(shm::no_sampled_frame);
        if (carried.size() != 1 || carried[0] != noted)
            throw std::runtime_error(fmt::format("frame {}: its header names another latest frame", n));
        if (noted == shm::no_sampled_frame) return;
        if (!is_whole(seen + words, noted))
            throw std::runtime_error(fmt::format("frame {}: the latest frame {} is not whole", n, noted));
        if (!report_path_.empty()) std::ofstream(report_path_) << noted << "\n";
    }

private:
    static constexpr u64 words = 4096, bytes = words * sizeof(u64);

    void fill(u64* to, u64 n) const {
        for (u64 k = 0; k < words; ++k) to[k] = n * words + k;
        if (tear_at_ >= 0 && static_cast<i64>(n) >= tear_at_) to[words / 2] = 0;
    }
    static bool is_whole(const u64* all, u64 n) {
        for (u64 k = 0; k < words; ++k)
            if (all[k] != n * words + k) return false;
        return true;
    }

    void check_sampled(carousel::frame& f) {
        f.queue().copy(f.output().plane<u64>("words").data(), f.input().plane<const u64>("words").data(),
                       bytes);
        const sampled_frame sampled = samples_ ? f.sampled(0) : sampled_frame();
        if (!sampled) return;
        const u64 n = sampled.frame_number();
        if (n < last_)
            throw std::runtime_error(fmt::format("the latest frame went back from {} to {}", last_, n));
        last_ = n;
        if (static_cast<i64>(f.frame_number()) == die_at_) die(f, sampled);
        f.metadata().set("latest", n);
        f.queue().copy(f.output().plane<u64>("latest").data(), sampled.plane<const u64>("words").data(),
                       bytes);
    }

    [[noreturn]] void die(carousel::frame& f, const sampled_frame& sampled) {
        f.queue().copy(host_[f.lane()]->data(), sampled.plane<const u64>("words").data(), bytes);
        f.queue().drain();
        const bool whole =
            is_whole(reinterpret_cast<const u64*>(host_[f.lane()]->host_data()), sampled.frame_number());
        throw std::runtime_error(fmt::format("dying as configured, next to frame {}, which is {}",
                                             sampled.frame_number(), whole ? "whole" : "torn"));
    }

    bool sink_ = false, source_ = false, reads_sampler_ = false, samples_ = false, trusts_ = false;
    i64 tear_at_ = -1, die_at_ = -1, slow_ms_ = 0;
    u64 last_ = 0;
    std::string report_path_;
    std::vector<std::unique_ptr<device::mapping>> host_;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::sampling_stage>(argc, argv); }
