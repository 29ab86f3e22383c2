// One measured run of the baseline: carousel-bench-threads, which measures itself and says what it found.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/pipeline_run.hpp"
#include "core/errors.hpp"
#include "os/subprocess.hpp"

namespace carousel::bench {
namespace {

using nlohmann::json;

/// Its last line without the "error: " that ours brings.
std::string said_by(const supervisor::subprocess_result& r, u32 patience_ms) {
    std::string text = r.messages;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    text = text.substr(text.rfind('\n') + 1);
    if (text.starts_with("error: ")) text = text.substr(7);
    return !text.empty() ? text : r.started ? r.ending(patience_ms) : r.error;
}

}  // namespace

run_figures measure_threads(const run_order& o, supervisor::interrupts& ctrl_c) {
    if (ctrl_c.sleep(0)) throw interrupted{};
    std::vector<std::string> words{o.programs + "/carousel-bench-threads", o.file, "--warm-up",
                                   fmt::format("{}", o.warm_up_s)};
    if (o.frames > 0)
        words.insert(words.end(), {"--frames", fmt::format("{}", o.frames)});
    else
        words.insert(words.end(), {"--seconds", fmt::format("{}", o.seconds)});
    words.insert(words.end(), o.words.begin(), o.words.end());
    const u32 patience_ms =
        o.frames > 0 ? 3'600'000 : static_cast<u32>((o.warm_up_s + o.seconds + 120) * 1e3);
    const supervisor::subprocess_result r = supervisor::run_subprocess(words, "", patience_ms);
    if (ctrl_c.sleep(0)) throw interrupted{};
    if (!r.succeeded())
        throw error(r.exit_code > 0 ? r.exit_code : exit_code::stage_failed,
                    fmt::format("{}: {}", words.front(), said_by(r, patience_ms)));
    const json said = json::parse(r.output);
    run_figures f;
    f.frames = said.at("frames");
    f.seconds = said.at("seconds");
    f.frames_per_second = static_cast<f64>(f.frames) / f.seconds;
    f.p50_ms = f.whole_p50_ms = said.at("p50_ms");
    f.p99_ms = f.whole_p99_ms = said.at("p99_ms");
    f.latency_of_window = true;
    f.cpu_ms_per_frame = said.at("cpu_ms_per_frame");
    f.memory_bytes = said.at("memory_bytes");
    f.resident_bytes = said.at("resident_bytes");
    f.gpu_bytes = said.at("gpu_bytes");
    return f;
}

}  // namespace carousel::bench
