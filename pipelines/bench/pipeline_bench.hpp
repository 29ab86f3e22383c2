#pragma once
// `carousel bench pipeline`: in each round, runs every combination of mode, size and build once, in an order
// that rotates; reports the results as a table and as JSON.
// JSON: {file, rounds, warm_up_s, seconds | frames, builds: {A, B | absent}, latency_of: "window" | "run",
// skipped: [text],
//   cells: [{mode, width, height (null: the file's), runs: {A: [{frames_per_second, p50_ms, p99_ms,
//   cpu_ms_per_frame, memory_bytes, resident_bytes, gpu_bytes | null, frames, seconds}], B: [...]}, median:
//   {A: {...}, B: {...}}, difference: null | {frames_per_second: {percent, low, high} | null, p50_ms, p99_ms,
//   cpu_ms_per_frame, memory_bytes}, verdict: text | null,
//   of_none: null | {A: null | {ratio, low, high}, B: ...}, of_kernels: the same}],
//   bounds: [{width, height, rounds: [{lone_ms, frames_per_second, queues, cpu_ms_per_frame}], lone_ms,
//   frames_per_second}]}
// A cell also has depth: null | {in_flight, window}, and load: "saturated" | "lone". of_kernels is computed
// per round. For a saturated cell it is the cell's frames/s divided by the frames/s of the bound; for a cell
// with lone frames it is the cell's p50 divided by the lone_ms of the bound.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "bench/pipeline_run.hpp"

namespace carousel::bench {

/// The results of one mode, size and depth, either saturated or with lone frames (paced so that only one
/// frame is in the pipeline at a time); runs[k]: the rounds of build k.
struct bench_cell {
    std::string mode;
    std::optional<picture_size> size;
    std::optional<forced_depth> depth;
    bool lone = false;
    std::vector<std::vector<run_figures>> runs;
};

/// The rates of this build's kernels alone at one size, one entry per round.
struct bench_bound {
    std::optional<picture_size> size;
    std::vector<reported_kernel_figures> rounds;
};

struct pipeline_bench_result {
    pipeline_bench_options options;
    std::vector<std::string> builds;   ///< folders of programs: A and B, or only this build
    std::vector<std::string> skipped;  ///< what could not be measured, with the reason
    std::vector<bench_cell> cells;
    std::vector<bench_bound> bounds;  ///< empty: `skipped` has the reason
};

/// Runs the bench. `own`: the folder of this build's programs. `report_progress` is called with a line before
/// each step. Throws error, interrupted.
[[nodiscard]] pipeline_bench_result run_pipeline_bench(
    const pipeline_bench_options& o, const std::string& own,
    const std::function<void(const std::string&)>& report_progress);

/// Returns the values of one figure for all runs.
[[nodiscard]] std::vector<f64> column(const std::vector<run_figures>& runs, f64 run_figures::*figure);
/// Returns the resolution of a cell's rate in percent: by how much the rate changes if a run has one frame
/// more or less.
[[nodiscard]] f64 resolution_percent(const bench_cell& c);

/// Returns the bound for this cell's size, or null.
[[nodiscard]] const bench_bound* bound_of(const pipeline_bench_result& r, const bench_cell& c);
[[nodiscard]] std::vector<f64> column(const bench_bound& b, f64 reported_kernel_figures::*figure);

/// Returns "process, 1280x720", "free, 14 in flight, windows of 16", ...
[[nodiscard]] std::string name_of(const bench_cell& c);

[[nodiscard]] std::string plot_of(const pipeline_bench_result& r);
[[nodiscard]] std::string json_of(const pipeline_bench_result& r);
[[nodiscard]] std::string table_of(const pipeline_bench_result& r);

// The plan of a pipeline bench: one cell per mode, size, depth and load, and the arguments of the command
// that runs it.

/// Fills cells, bounds and `skipped`. All checks that can refuse a measurement are made in this function,
/// before anything is run; modes that are impossible on this machine are listed in `skipped`. Throws error.
void plan_cells(pipeline_bench_result& r);

/// `programs`: the folder of a build's programs.
[[nodiscard]] run_order order_of(const pipeline_bench_result& r, const std::string& programs,
                                 const bench_cell& c);
[[nodiscard]] run_order order_of_bound(const pipeline_bench_result& r, const std::string& programs,
                                       const bench_bound& b);

}  // namespace carousel::bench
