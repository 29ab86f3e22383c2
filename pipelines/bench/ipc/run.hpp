#pragma once
// Runs the measurements. All children are processes of this one, die with it (PR_SET_PDEATHSIG) and end
// within a time limit.

#include <functional>
#include <string>

#include "bench/ipc/options.hpp"
#include "bench/ipc/result.hpp"

namespace carousel::bench {

using progress_function = std::function<void(const std::string&)>;

/// `programs`: the folder of `carousel`, which holds the space. Throws shm_error, config_error.
[[nodiscard]] ipc_bench_result run_ipc_bench(const ipc_bench_options& o, const std::string& programs,
                                             const progress_function& report_progress);

void measure_memory(const ipc_bench_options& o, ipc_bench_result& r,
                    const progress_function& report_progress);
void measure_hops(const ipc_bench_options& o, const std::string& space, const std::string& programs,
                  ipc_bench_result& r, const progress_function& report_progress);
void measure_primitives(const ipc_bench_options& o, const std::string& space, ipc_bench_result& r,
                        const progress_function& report_progress);

}  // namespace carousel::bench
