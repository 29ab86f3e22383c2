#include "device/cuda/check.hpp"
#include "ipc/cuda/gpu_side.cuh"
#include "ipc/cuda/repair.hpp"
#include "ipc/gpu_layout.hpp"

namespace carousel::ipc {
namespace {

constexpr u32 threads = 1024, max_incarnations = 64;

struct dead_incarnations {
    u32 epoch[max_incarnations];
    u32 count;
};

// Runs with one block. All threads search for cells to repair, but only one thread repairs and counts,
// because a tally records one loss at a time.
__global__ void repair_queue(queue_parts<u64> parts, dead_incarnations dead) {
    const queue_body<gpu_side> q(parts, 0);
    for (u32 base = 0; base < parts.capacity; base += threads) {
        const u32 k = base + threadIdx.x;
        const cell_word w = k < parts.capacity ? cell_word::of(gpu_side::load(parts.cell[k])) : cell_word{};
        if (__syncthreads_or(w.state == cell_state::tomb || w.state == cell_state::lost) == 0) continue;
        for (u32 n = base; threadIdx.x == 0 && n < base + threads && n < parts.capacity; ++n)
            q.settle_marked(n);
    }
    __syncthreads();
    if (threadIdx.x == 0) q.settle_done();
    __syncthreads();
    for (u32 index = 0; index < dead.count; ++index) {
        const u32 epoch = dead.epoch[index];
        for (u32 base = 0; base < parts.capacity; base += threads) {
            const u32 k = base + threadIdx.x;
            const cell_word w =
                k < parts.capacity ? cell_word::of(gpu_side::load(parts.cell[k])) : cell_word{};
            if (__syncthreads_or(w.epoch == epoch) == 0) continue;
            for (u32 n = base; threadIdx.x == 0 && n < base + threads && n < parts.capacity; ++n)
                q.repair_cell(n, epoch);
        }
    }
}

// Each thread repairs its places independently, because losses are not counted here.
__global__ void repair_work_queue(task_parts<u64> parts, dead_incarnations dead) {
    const task_body<gpu_side> w(parts, 0);
    for (u32 index = 0; index < dead.count; ++index)
        for (u32 k = threadIdx.x; k < parts.capacity; k += threads) w.repair_place(k, dead.epoch[index]);
}

}  // namespace

void repair_gpu_words(const space_block& s, std::byte* gpu, const std::vector<u32>& dead) {
    for (std::size_t first = 0; first < dead.size(); first += max_incarnations) {
        dead_incarnations some{};
        for (std::size_t k = first; k < dead.size() && some.count < max_incarnations; ++k)
            some.epoch[some.count++] = dead[k];
        for (const directory_entry& e : s.place) {
            if (place_word::of(load(e.state)).state != place_state::ready) continue;
            const shape what = e.shaped();
            if (what.what == kind::gpu_queue)
                repair_queue<<<1, threads>>>(gpu_queue_at(gpu + e.gpu_offset, static_cast<u32>(what.count),
                                                          static_cast<u32>(what.each)),
                                             some);
            if (what.what == kind::gpu_work_queue)
                repair_work_queue<<<1, threads>>>(
                    gpu_work_queue_at(gpu + e.gpu_offset, static_cast<u32>(what.count),
                                      static_cast<u32>(what.each), static_cast<u32>(what.more)),
                    some);
            CAROUSEL_CUDA_SETUP("CUDA", cudaGetLastError());
        }
    }
    CAROUSEL_CUDA_SETUP("CUDA", cudaDeviceSynchronize());
}

}  // namespace carousel::ipc
