// One measured run of the baseline, or of its kernels alone: starts carousel-bench-threads, which measures
// itself, and reads its report.
#include <fmt/format.h>

#include <algorithm>

#include "bench/pipeline_run.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "os/subprocess.hpp"

namespace carousel::bench {
namespace {

using nlohmann::json;

/// Returns the program's last line without its "error: " prefix, because our own message already has one.
std::string failure_text(const supervisor::subprocess_result& r, u32 patience_ms) {
    const std::string_view text = log::last_line_of(r.messages);
    return !text.empty() ? std::string(text) : r.started ? r.ending(patience_ms) : r.error;
}

json threads_report(const run_order& o, const std::vector<std::string>& more, u32 patience_ms,
                    supervisor::interrupts& ctrl_c) {
    if (ctrl_c.sleep(0)) throw interrupted{};
    std::vector<std::string> words{o.programs + "/carousel-bench-threads", o.file};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), o.words.begin(), o.words.end());
    const supervisor::subprocess_result r = supervisor::run_subprocess(words, "", patience_ms);
    if (ctrl_c.sleep(0)) throw interrupted{};
    if (!r.succeeded())
        throw error(r.exit_code > 0 ? r.exit_code : exit_code::stage_failed,
                    fmt::format("{}: {}", words.front(), failure_text(r, patience_ms)));
    return parse_json(r.output, json_channel::document);
}

constexpr f64 start_limit_s = 120;

}  // namespace

reported_kernel_figures measure_bound(const run_order& o, supervisor::interrupts& ctrl_c) {
    // The program measures with 1, 2 and 4 queues. These three measurements share the time of one run, and
    // each takes at most one second.
    const f64 seconds = o.frames > 0 ? 0.3 : std::clamp(o.seconds / 3, 0.1, 1.0);
    const json report = threads_report(o, {"--kernels-alone", "--seconds", fmt::format("{}", seconds)},
                                       static_cast<u32>(start_limit_s * 1e3), ctrl_c);
    return {report.at("lone_ms"), report.at("frames_per_second"), report.at("cpu_ms_per_frame"),
            report.at("queues")};
}

run_figures measure_threads(const run_order& o, supervisor::interrupts& ctrl_c) {
    const bool by_frames = o.frames > 0;
    const json report = threads_report(
        o,
        {"--warm-up", fmt::format("{}", o.warm_up_s), by_frames ? "--frames" : "--seconds",
         by_frames ? fmt::format("{}", o.frames) : fmt::format("{}", o.seconds)},
        by_frames ? 3'600'000 : static_cast<u32>((o.warm_up_s + o.seconds + start_limit_s) * 1e3), ctrl_c);
    run_figures f;
    f.frames = report.at("frames");
    f.seconds = report.at("seconds");
    f.frames_per_second = static_cast<f64>(f.frames) / f.seconds;
    f.p50_ms = f.whole_p50_ms = report.at("p50_ms");
    f.p99_ms = f.whole_p99_ms = report.at("p99_ms");
    f.latency_of_window = true;
    f.cpu_ms_per_frame = report.at("cpu_ms_per_frame");
    f.memory_bytes = report.at("memory_bytes");
    f.resident_bytes = report.at("resident_bytes");
    f.gpu_bytes = report.at("gpu_bytes");
    return f;
}

}  // namespace carousel::bench
