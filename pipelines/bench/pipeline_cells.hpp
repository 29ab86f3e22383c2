#pragma once
// The plan of a pipeline bench: one cell per mode, size, depth and load, and the arguments of the command
// that runs it.

#include "bench/pipeline_bench.hpp"

namespace carousel::bench {

/// Fills cells, bounds and `skipped`. All checks that can refuse a measurement happen here, before anything
/// is run; modes that are impossible here are listed in `skipped`. Throws error.
void plan_cells(pipeline_bench_result& r);

/// `programs`: the folder of a build's programs.
[[nodiscard]] run_order order_of(const pipeline_bench_result& r, const std::string& programs,
                                 const bench_cell& c);
[[nodiscard]] run_order order_of_bound(const pipeline_bench_result& r, const std::string& programs,
                                       const bench_bound& b);

}  // namespace carousel::bench
