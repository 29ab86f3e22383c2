// The stages after the G-buffer on CUDA: one thread per pixel, one launch per pass.
#include "kernels/body/light.hpp"
#include "kernels/body/post.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/launch.cuh"

namespace carousel::kernels::cuda {
namespace {

using namespace body;  // NOLINT: the file is built from these functions

__device__ const srgb_tables tables = make_srgb_tables();

const srgb_tables* device_tables() {
    void* at = nullptr;
    check(cudaGetSymbolAddress(&at, tables), "finding the sRGB tables");
    return static_cast<const srgb_tables*>(at);
}

dim3 blocks_of(u32 width, u32 height) { return {(width + 31) / 32, (height + 7) / 8}; }
const dim3 threads(32, 8);

/// One thread per pixel of a picture of `width` x `height`.
template <typename Pass, void (*pixel)(const Pass&, u32, u32)>
__global__ void __launch_bounds__(256) each_pixel(const __grid_constant__ Pass p, u32 width, u32 height) {
    const u32 x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < width && y < height) pixel(p, x, y);
}

// A function that is forced inline has no address that a template could use.
__device__ void occlusion_of(const light_pass& p, u32 x, u32 y) { occlusion_pixel(p, x, y); }
__device__ void light_of(const light_pass& p, u32 x, u32 y) { light_pixel(p, x, y); }
__device__ void down_of(const bloom_down_pass& p, u32 x, u32 y) { bloom_down_pixel(p, x, y); }
__device__ void up_of(const bloom_up_pass& p, u32 x, u32 y) { bloom_up_pixel(p, x, y); }
__device__ void tone_of(const tone_pass& p, u32 x, u32 y) { tone_pixel(p, x, y); }
__device__ void smooth_of(const smooth_pass& p, u32 x, u32 y) { smooth_pixel(p, x, y); }

/// One block per row. The sums are integers, so their order does not matter.
__global__ void __launch_bounds__(256) compare_row(const __grid_constant__ compare_pass p, u32* sums) {
    __shared__ u32 total[2];
    if (threadIdx.x < 2) total[threadIdx.x] = 0;
    __syncthreads();
    u32 sum = 0, pixels = 0;
    for (u32 x = threadIdx.x; x < p.width; x += 256) {
        const u32 difference = compare_pixel(p, x, blockIdx.x);
        sum += difference;
        pixels += difference != 0 ? 1U : 0U;
    }
    atomicAdd(&total[0], sum);
    atomicAdd(&total[1], pixels);
    __syncthreads();
    if (threadIdx.x < 2) sums[2 * blockIdx.x + threadIdx.x] = total[threadIdx.x];
}

}  // namespace

void light(device::queue& q, const light_args& args) {
    const light_pass p = make_light_pass(args, device_tables());
    const dim3 blocks = blocks_of(args.width, args.height);
    if (args.occlusion_radius > 0.0F)
        launch("occlusion", each_pixel<light_pass, occlusion_of>, blocks, threads, q, p, args.width,
               args.height);
    launch("light", each_pixel<light_pass, light_of>, blocks, threads, q, p, args.width, args.height);
}

void post(device::queue& q, const post_args& args) {
    const post_plan plan = make_post_plan(args, device_tables());
    for (u32 i = 0; i < plan.downs; ++i) {
        const linear_picture& to = plan.down[i].to;
        launch("bloom_down", each_pixel<bloom_down_pass, down_of>, blocks_of(to.width, to.height), threads, q,
               plan.down[i], to.width, to.height);
    }
    for (u32 i = 0; i + 1 < plan.downs; ++i) {
        const linear_picture& to = plan.up[i].to;
        launch("bloom_up", each_pixel<bloom_up_pass, up_of>, blocks_of(to.width, to.height), threads, q,
               plan.up[i], to.width, to.height);
    }
    const dim3 blocks = blocks_of(args.width, args.height);
    launch("tone", each_pixel<tone_pass, tone_of>, blocks, threads, q, plan.tone, args.width, args.height);
    if (args.smooth_edges)
        launch("smooth", each_pixel<smooth_pass, smooth_of>, blocks, threads, q, plan.smooth, args.width,
               args.height);
}

void compare(device::queue& q, const compare_args& args) {
    launch("compare", compare_row, dim3(args.height), dim3(256), q, make_compare_pass(args), args.rows);
}

}  // namespace carousel::kernels::cuda
