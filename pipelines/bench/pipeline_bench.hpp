#pragma once
// `carousel bench pipeline`: every mode, size and build once a round, in an order that turns; what came out,
// as a table and as JSON.
//
// JSON: {file, rounds, warm_up_s, seconds | frames, builds: {A, B | absent}, latency_of: "window" | "run",
// skipped: [text],
//   cells: [{mode, width, height (null: the file's), runs: {A: [{frames_per_second, p50_ms, p99_ms,
//   cpu_ms_per_frame, memory_bytes, resident_bytes, gpu_bytes | null, frames, seconds}], B: [...]}, median:
//   {A: {...}, B: {...}}, difference: null | {frames_per_second: {percent, low, high} | null, p50_ms, p99_ms,
//   cpu_ms_per_frame, memory_bytes}, verdict: text | null,
//   of_none: null | {A: null | {ratio, low, high}, B: ...}, of_kernels: the same}],
//   bounds: [{width, height, rounds: [{lone_ms, frames_per_second, queues, cpu_ms_per_frame}], lone_ms,
//   frames_per_second}]}
// A cell also has depth: null | {in_flight, window}, and load: "saturated" | "lone". of_kernels: of a
// saturated cell its frames/s over the bound's, of a lone one its p50 over the bound's lone_ms, round by
// round.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/pipeline_options.hpp"
#include "bench/pipeline_run.hpp"

namespace carousel::bench {

/// One mode, size and depth, saturated or with frames that are alone; runs[k]: the rounds of build k.
struct bench_cell {
    std::string mode;
    std::optional<picture_size> size;
    std::optional<forced_depth> depth;
    bool lone = false;
    std::vector<std::vector<run_figures>> runs;
};

/// What this build's kernels make alone at one size, a round each.
struct bench_bound {
    std::optional<picture_size> size;
    std::vector<reported_kernel_figures> rounds;
};

struct pipeline_bench_result {
    pipeline_bench_options options;
    std::vector<std::string> builds;   ///< folders of programs: A, B; or this one alone
    std::vector<std::string> skipped;  ///< what could not be measured, and why
    std::vector<bench_cell> cells;
    std::vector<bench_bound> bounds;  ///< none: `skipped` says why
};

/// `own`: the folder of this build's programs. `report_progress` hears what is under way. Throws error,
/// interrupted.
[[nodiscard]] pipeline_bench_result run_pipeline_bench(
    const pipeline_bench_options& o, const std::string& own,
    const std::function<void(const std::string&)>& report_progress);

/// One figure of all runs of a cell and build.
[[nodiscard]] std::vector<f64> column(const std::vector<run_figures>& runs, f64 run_figures::*figure);
/// What a frame more or less in a run makes of its rate.
[[nodiscard]] f64 resolution_percent(const bench_cell& c);

/// The bound of this cell's size; null without.
[[nodiscard]] const bench_bound* bound_of(const pipeline_bench_result& r, const bench_cell& c);
[[nodiscard]] std::vector<f64> column(const bench_bound& b, f64 reported_kernel_figures::*figure);

/// "1280x720", "14 in flight, window 16", ...
[[nodiscard]] std::string name_of(const bench_cell& c);

[[nodiscard]] std::string plot_of(const pipeline_bench_result& r);
[[nodiscard]] std::string json_of(const pipeline_bench_result& r);
[[nodiscard]] std::string table_of(const pipeline_bench_result& r);

}  // namespace carousel::bench
