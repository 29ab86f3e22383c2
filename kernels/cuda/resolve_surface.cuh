#pragma once
// Writes the G-buffer of each pixel, from its key. Included only by fragment_stage.cu, after resolve.cuh,
// whose tables it uses.

#include "kernels/body/gbuffer.hpp"

namespace carousel::kernels::cuda {
namespace {

struct surface_args {
    surface_job job;
    const unsigned long long* keys;
};
struct device_srgb {
    __device__ __forceinline__ f32 decode(u32 i) const { return tables.decode[i]; }
    __device__ __forceinline__ u8 encode(u32 i) const { return tables.encode[i]; }
};

__global__ void __launch_bounds__(256) resolve_surface(const __grid_constant__ surface_args a) {
    const u32 x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    wait_for_last();
    if (x < a.job.width && y < a.job.height)
        surface_pixel(a.job, device_srgb{}, a.keys[u64{y} * a.job.width + x], x, y);
}

}  // namespace
}  // namespace carousel::kernels::cuda
