#pragma once
// Runs the measurements. All child processes die with this process (PR_SET_PDEATHSIG) and end within a time
// limit.

#include <functional>
#include <string>

#include "bench/ipc/result.hpp"
#include "bench/options.hpp"

namespace carousel::bench {

using progress_function = std::function<void(const std::string&)>;

/// `programs`: the folder that contains the program `carousel`, which is started to hold the space. Throws
/// shm_error, config_error.
[[nodiscard]] ipc_bench_result run_ipc_bench(const ipc_bench_options& o, const std::string& programs,
                                             const progress_function& report_progress);

void measure_memory(const ipc_bench_options& o, ipc_bench_result& r,
                    const progress_function& report_progress);
void measure_hops(const ipc_bench_options& o, const std::string& space, const std::string& programs,
                  ipc_bench_result& r, const progress_function& report_progress);
void measure_primitives(const ipc_bench_options& o, const std::string& space, ipc_bench_result& r,
                        const progress_function& report_progress);

// The GPU tables of `carousel bench ipc`. The calling process never touches CUDA: all rows are measured by
// its child processes. In a build without CUDA, or if no GPU responds, these functions set the reason in
// ipc_bench_result::gpu.missing and measure nothing.

/// Compares memory of another process with the measuring process's own memory: bandwidth, pointer-chase
/// latency, cost of opening it. Measures memory on the same GPU and, if there are two GPUs, memory on the
/// other GPU.
void measure_gpu_memory(const ipc_bench_options& o, ipc_bench_result& r,
                        const progress_function& report_progress);
/// Measures the hop from a kernel of one process to a kernel of another for each mechanism. Measures two
/// processes in time slices, under MPS (with a daemon that runs only for this table) and on two GPUs, and for
/// comparison two streams of one process.
void measure_gpu_hops(const ipc_bench_options& o, ipc_bench_result& r,
                      const progress_function& report_progress);
/// Measures the primitives in kernels and streams of 1 to 16 processes, in time slices and under MPS, and,
/// for comparison, the fastest equivalent within one process. Rows that do not fit into the time limit are
/// listed as missing.
void measure_gpu_primitives(const ipc_bench_options& o, const std::string& programs, ipc_bench_result& r,
                            const progress_function& report_progress);

}  // namespace carousel::bench
