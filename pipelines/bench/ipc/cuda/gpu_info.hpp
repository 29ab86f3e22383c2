#pragma once
// The first GPU: its name, its current clocks and the best rates of its parts, queried by a child.

#include <string>

#include "bench/ipc/result.hpp"

namespace carousel::bench::gpu {

struct gpu_info {
    u32 devices = 0;
    std::string why, name;  ///< why: the reason if there is no GPU
    bool peers = false;     ///< the first two GPUs can access each other's memory
    f64 sm_mhz = 0, memory_mhz = 0;
    f64 memory_gb_s = 0, pcie_gb_s = 0, nvlink_gb_s = 0;
};
[[nodiscard]] gpu_info query_gpus();
void record_gpu(const gpu_info& info, bool before, gpu_result& r);

}  // namespace carousel::bench::gpu
