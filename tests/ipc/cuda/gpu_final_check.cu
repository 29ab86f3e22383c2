// The final check of the space for gpu_kills.cpp.
#include "core/clock.hpp"
#include "gpu_client.cuh"
#include "ipc/cuda/carousel/ipc_cuda.cuh"
#include "ipc/cuda/repair.hpp"

namespace carousel::test {
namespace {

using namespace carousel::ipc;

// By one thread, for the checks at the end.
__global__ void drain(queue_view<element> q, gpu_story* story, bool leases, u32* room) {
    element e;
    queue_lease l;
    while (leases ? q.try_lease(e, l) : q.try_pop(e)) {
        if (!e.whole()) ++story->torn;
        if (e.whole()) atomicAdd_system(story->item + e.number, finished);
        if (leases && !q.commit(l)) ++story->not_owned;
    }
    *room = 0;
    while (q.try_push(element::of(most_items - 1))) ++*room;
    while (q.try_pop(e)) {
    }
}

__global__ void drain_work(work_queue_view<element> w, gpu_story* story, u32* room) {
    element e;
    claimed_task t;
    while (w.try_claim(e, t)) {
        if (!e.whole()) ++story->torn;
        if (e.whole()) atomicAdd_system(story->item + e.number, finished);
        if (!w.commit(t)) ++story->not_owned;
    }
    while (w.take_dead_letter(e)) atomicAdd_system(story->item + e.number, dead_letters);
    *room = 0;
    while (w.try_submit(element::of(most_items - 1))) ++*room;
    while (w.try_claim(e, t)) w.commit(t);
}

// For an epoch that is not in use: what a repair checks, with nothing to change. The second one, because the
// first one loads the kernels.
f64 repair_us_of(const space_block& block, std::byte* gpu) {
    repair_gpu_words(block, gpu, {~0U >> 8U});
    const u64 begun = now_ns();
    repair_gpu_words(block, gpu, {~0U >> 8U});
    return static_cast<f64>(now_ns() - begun) / 1000;
}

}  // namespace

int number_of_gpus() {
    int n = 0, there = 0, back = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess) return 0;
    if (n < 2) return n;
    const bool peers = cudaDeviceCanAccessPeer(&there, 0, 1) == cudaSuccess &&
                       cudaDeviceCanAccessPeer(&back, 1, 0) == cudaSuccess && there == 1 && back == 1;
    return peers ? n : 1;
}

final_check check_at_end(const std::string& space, u64 story_offset, const space_block& block) {
    gpu_space gpu(open(space));
    final_check out;
    auto* story = reinterpret_cast<gpu_story*>(gpu.at(story_offset));
    u32* room = nullptr;
    check(cudaMalloc(&room, sizeof *room));
    for (const bool leases : {true, false}) {
        const auto q = gpu.queue<element>(leases ? "leased" : "popped", queue_elements);
        drain<<<1, 1>>>(q.device(), story, leases, room);
        check(cudaDeviceSynchronize());
        check(cudaMemcpy(&out.room[leases ? 0 : 1], room, sizeof *room, cudaMemcpyDeviceToHost));
        const gpu_queue_state s = q.state();
        out.left += s.waiting + s.claimed + s.taken;
        out.lost[leases ? 0 : 1] = s.lost, out.tombs[leases ? 0 : 1] = s.tombs;
    }
    const auto work = gpu.work_queue<element>("work", queue_elements, work_attempts);
    drain_work<<<1, 1>>>(work.device(), story, room);
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(&out.room[2], room, sizeof *room, cudaMemcpyDeviceToHost));
    const gpu_work_state tasks = work.state();
    out.left += tasks.waiting + tasks.claimed + tasks.dead_letters;
    out.story = std::make_unique<gpu_story>();
    check(cudaMemcpy(out.story.get(), story, sizeof(gpu_story), cudaMemcpyDeviceToHost));
    shared_semaphore turn = open(space).semaphore("turn", 1);
    out.free_permits = turn.free(), out.waiting = turn.waiting();
    const pool_state p = gpu.pool("pages", pool_bytes).state();
    out.pool_bytes = p.bytes, out.pool_free = p.free_bytes;
    out.repair_us = repair_us_of(block, gpu.at(0));
    return out;
}

}  // namespace carousel::test
