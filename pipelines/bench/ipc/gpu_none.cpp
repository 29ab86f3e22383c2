// Used in a build without CUDA.
#include "bench/ipc/run.hpp"

namespace carousel::bench {

void measure_gpu_memory(const ipc_bench_options&, ipc_bench_result& r, const progress_function&) {
    r.gpu.missing["gpu"] = "built without CUDA";
}
void measure_gpu_hops(const ipc_bench_options&, ipc_bench_result& r, const progress_function&) {
    r.gpu.missing["gpu"] = "built without CUDA";
}
void measure_gpu_primitives(const ipc_bench_options&, const std::string&, ipc_bench_result& r,
                            const progress_function&) {
    r.gpu.missing["gpu"] = "built without CUDA";
}

}  // namespace carousel::bench
