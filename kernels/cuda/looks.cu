// The stages after the G-buffer on CUDA: one thread per pixel, one launch per pass. The sRGB tables are the
// kernels' own, so the passes have none.
#include "kernels/body/light_pixel.hpp"
#include "kernels/body/post.hpp"
#include "kernels/body/taa.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/launch.cuh"

namespace carousel::kernels::cuda {
namespace {

using namespace body;  // NOLINT: the file is built from these functions

__device__ const srgb_tables tables = make_srgb_tables();

dim3 blocks_of(u32 width, u32 height) { return {(width + 31) / 32, (height + 7) / 8}; }
const dim3 threads(32, 8);

/// A pass over a picture of `width` x `height`.
template <typename Pass>
struct over_picture {
    Pass pass;
    u32 width, height;
};
/// One thread per pixel. Each pass may begin while its predecessor ends, but waits for it before it reads.
template <typename Pass, void (*pixel)(const Pass&, u32, u32)>
__global__ void __launch_bounds__(256) each_pixel(const __grid_constant__ over_picture<Pass> a) {
    const u32 x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    wait_for_last();
    let_next_begin();
    if (x < a.width && y < a.height) pixel(a.pass, x, y);
}
/// Launches a pass, in stream order if it is the first one of a frame's work.
template <typename Pass, void (*pixel)(const Pass&, u32, u32)>
void over(device::queue& q, const char* name, const Pass& pass, u32 width, u32 height, bool first = false) {
    const over_picture<Pass> a{pass, width, height};
    if (first)
        launch(name, each_pixel<Pass, pixel>, blocks_of(width, height), threads, q, a);
    else
        launch_after(name, each_pixel<Pass, pixel>, blocks_of(width, height), threads, q, a);
}

// A function that is forced inline has no address that a template could use.
__device__ void occlusion_of(const light_pass& p, u32 x, u32 y) { occlusion_pixel(p, x, y); }
__device__ void light_of(const light_pass& p, u32 x, u32 y) { light_pixel(p, tables, x, y); }
/// Not inline, because it is called in two places.
__device__ __noinline__ vec3 light_of_surface(const light_pass& p, const seen_words& w, f32 depth, u32 x,
                                              u32 y) {
    return seen_light(p, tables, w, depth, x, y);
}
__device__ void light_of_samples(const light_pass& p, u32 x, u32 y) {
    light_samples_pixel(p, u64{y} * p.a.width + x,
                        [&](const seen_words& w, f32 depth) { return light_of_surface(p, w, depth, x, y); });
}
__device__ void down_of(const bloom_down_pass& p, u32 x, u32 y) { bloom_down_pixel(p, x, y); }
__device__ void up_of(const bloom_up_pass& p, u32 x, u32 y) { bloom_up_pixel(p, x, y); }
__device__ void tone_of(const tone_pass& p, u32 x, u32 y) { tone_pixel(p, tables, x, y); }
__device__ void taa_of(const taa_pass& p, u32 x, u32 y) { taa_pixel(p, x, y); }
__device__ void smooth_of(const smooth_pass& p, u32 x, u32 y) { smooth_pixel(p, x, y); }

/// One block per row. The sums are integers, so their order does not matter.
__global__ void __launch_bounds__(256) meter_row(const __grid_constant__ meter_pass p) {
    __shared__ i32 total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    i32 sum = 0;
    for (u32 x = threadIdx.x; x < p.width; x += 256) sum += meter_pixel(p, x, blockIdx.x);
    atomicAdd(&total, sum);
    __syncthreads();
    if (threadIdx.x == 0) p.rows[blockIdx.x] = total;
}
__global__ void __launch_bounds__(256) meter_sum(const __grid_constant__ meter_pass p) {
    __shared__ unsigned long long total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    i64 sum = 0;
    for (u32 y = threadIdx.x; y < p.height; y += 256) sum += p.rows[y];
    atomicAdd(&total, static_cast<unsigned long long>(sum));
    __syncthreads();
    if (threadIdx.x == 0) meter_exposure(p, static_cast<i64>(total));
}

/// As meter_row.
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
    const light_pass p = make_light_pass(args, nullptr);
    const bool occluded = args.occlusion_radius > 0.0F;
    if (occluded) over<light_pass, occlusion_of>(q, "occlusion", p, args.width, args.height, true);
    if (args.in.coverage != nullptr)
        over<light_pass, light_of_samples>(q, "light", p, args.width, args.height, !occluded);
    else
        over<light_pass, light_of>(q, "light", p, args.width, args.height, !occluded);
}

void post(device::queue& q, const post_args& args) {
    const post_plan plan = make_post_plan(args, nullptr);
    // Also without bloom, because it may change during the run, and the work of all frames must be the same
    // (description::same_work).
    bool first = true;
    if (args.meter.before != nullptr) {
        launch("meter", meter_row, dim3(args.height), dim3(256), q, plan.meter);
        launch("meter", meter_sum, dim3(1), dim3(256), q, plan.meter);
    }
    for (const bloom_down_pass& down : plan.down) {
        over<bloom_down_pass, down_of>(q, "bloom_down", down, down.to.width, down.to.height, first);
        first = false;
    }
    for (const bloom_up_pass& up : plan.up)
        over<bloom_up_pass, up_of>(q, "bloom_up", up, up.to.width, up.to.height);
    over<tone_pass, tone_of>(q, "tone", plan.tone, args.width, args.height);
    if (args.smooth_edges) over<smooth_pass, smooth_of>(q, "smooth", plan.smooth, args.width, args.height);
}

void taa(device::queue& q, const taa_args& args) {
    over<taa_pass, taa_of>(q, "taa", make_taa_pass(args), args.width, args.height, true);
}

void compare(device::queue& q, const compare_args& args) {
    launch("compare", compare_row, dim3(args.height), dim3(256), q, make_compare_pass(args), args.rows);
}

}  // namespace carousel::kernels::cuda
