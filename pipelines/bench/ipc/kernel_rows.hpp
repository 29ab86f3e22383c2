#pragma once
// Rows of the table of primitives: in kernels of several processes, beside libcu++ in one.

#include "bench/ipc/run.hpp"

namespace carousel::bench {

/// Nothing where there is no GPU.
void measure_kernel_rows(const ipc_bench_options& o, const std::string& programs, ipc_bench_result& r,
                         const say_progress& say);

}  // namespace carousel::bench
