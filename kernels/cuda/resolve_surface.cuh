#pragma once
// Writes the G-buffer of each pixel, from its key. Included only by fragment_stage.cu, after resolve.cuh,
// whose tables it uses.

#include "kernels/body/layers.hpp"
#include "kernels/body/samples.hpp"

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

/// Two keys per row of samples and pixel, which are read at once.
struct pixel_keys {
    u64 of[4];
};
__device__ __forceinline__ pixel_keys keys_of(const surface_args& a, u32 x, u32 y) {
    const auto* const rows = reinterpret_cast<const ulonglong2*>(a.keys) + u64{y} * 2 * a.job.width + x;
    const ulonglong2 upper = rows[0], lower = rows[a.job.width];
    return {{upper.x, upper.y, lower.x, lower.y}};
}
__global__ void __launch_bounds__(256) resolve_samples(const __grid_constant__ surface_args a) {
    const u32 x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    wait_for_last();
    if (x >= a.job.width || y >= a.job.height) return;
    const pixel_keys keys = keys_of(a, x, y);
    samples_pixel(a.job, device_srgb{}, keys.of, x, y);
    if (a.layers != nullptr)
        layers_pixel(a.job, device_srgb{}, reinterpret_cast<const u64*>(a.layers) + u64{y} * a.job.width + x,
                     u64{a.job.width} * a.job.height, x, y);
}

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
