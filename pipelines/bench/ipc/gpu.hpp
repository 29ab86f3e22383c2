#pragma once
// The GPU's tables of `carousel bench ipc`. The calling process never touches CUDA: each row is measured by
// children that end with it. In a build without CUDA, and where no GPU answers, both say why in
// ipc_bench_result::gpu.missing and measure nothing.

#include "bench/ipc/run.hpp"

namespace carousel::bench {

/// Memory of another process beside one's own: rates, a chase of pointers, what opening it costs. A GPU's
/// own, and with two GPUs that of the other one.
void measure_gpu_memory(const ipc_bench_options& o, ipc_bench_result& r,
                        const progress_function& report_progress);
/// From a kernel of one process to a kernel of another by each means: in time slices, under MPS (of a daemon
/// that lives for this table only), over two GPUs, and beside them two streams of one process.
void measure_gpu_hops(const ipc_bench_options& o, ipc_bench_result& r,
                      const progress_function& report_progress);
/// The primitives in kernels and streams of 1 to 16 processes, in time slices and under MPS, beside the best
/// that one process has. What isn't measured when its time is over is named.
void measure_gpu_primitives(const ipc_bench_options& o, const std::string& programs, ipc_bench_result& r,
                            const progress_function& report_progress);

}  // namespace carousel::bench
