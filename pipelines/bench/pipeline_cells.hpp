#pragma once
// What a bench of a pipeline measures: a cell for each mode, size, depth and load, and the words that make a
// run of it.

#include "bench/pipeline_bench.hpp"

namespace carousel::bench {

/// Fills cells, bounds and `skipped`. Everything that can be refused is refused here, before the first minute
/// is spent; modes that can't be are left out, and said. Throws error.
void plan_cells(pipeline_bench_result& r);

/// `programs`: the folder of a build's programs.
[[nodiscard]] run_order order_of(const pipeline_bench_result& r, const std::string& programs,
                                 const bench_cell& c);
[[nodiscard]] run_order order_of_bound(const pipeline_bench_result& r, const std::string& programs,
                                       const bench_bound& b);

}  // namespace carousel::bench
