#pragma once
// Writes the G-buffer of each pixel, from its key. Included only by fragment_stage.cu, after resolve.cuh,
// whose tables it uses.

#include "kernels/body/layers.hpp"

namespace carousel::kernels::cuda {
namespace {

struct surface_args {
    surface_job job;
    const unsigned long long* keys;
    unsigned long long* layers;  ///< u64[layer_count][height][width]
};
struct device_srgb {
    __device__ __forceinline__ f32 decode(u32 i) const { return tables.decode[i]; }
    __device__ __forceinline__ u8 encode(u32 i) const { return tables.encode[i]; }
};

__global__ void __launch_bounds__(256) resolve_surface(const __grid_constant__ surface_args a) {
    const u32 x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    wait_for_last();
    if (x >= a.job.width || y >= a.job.height) return;
    const u64 at = u64{y} * a.job.width + x;
    surface_pixel(a.job, device_srgb{}, a.keys[at], x, y);
    if (a.layers != nullptr)
        layers_pixel(a.job, device_srgb{}, reinterpret_cast<const u64*>(a.layers) + at,
                     u64{a.job.width} * a.job.height, x, y);
}

}  // namespace
}  // namespace carousel::kernels::cuda
