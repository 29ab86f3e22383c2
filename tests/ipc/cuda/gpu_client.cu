// A process of gpu_kills.cu: it uses every primitive of the space in kernels and streams until it is killed,
// or until one of its threads has come to a named step: that thread goes no further, and the process kills
// itself behind the kernel, with what the step leaves.
#include "gpu_client.cuh"

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <random>

#include "gpu_book.cuh"
#include "ipc/cuda/carousel/ipc_cuda.cuh"
#include "shm/process_id.hpp"

namespace carousel::test {
namespace {

using namespace carousel::ipc;

__device__ u32 deadly_step = ~0U, passages = 0, reached = 0;

struct dying_side : gpu_side {
    __device__ static void at(step s) {
        if (static_cast<u32>(s) != deadly_step || atomicSub(&passages, 1U) != 1U) return;
        atomicExch(&reached, 1U);
        asm volatile("exit;");
    }
};
using view = queue_view<element, dying_side>;
using work_view = work_queue_view<element, dying_side>;

__global__ void push_some(view q, gpu_story* story, u32 base, u32 count) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= count) return;
    if (q.try_push(element::of(base + k))) atomicAdd_system(story->item + base + k, sent);
}

// Leases as many as there are threads; every eighth is given back, every fourth is kept for commit_kept.
__global__ void lease_some(view q, gpu_story* story, u32 dice, queue_lease* kept, u64* number) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    element e;
    queue_lease l;
    number[k] = ~u64{0};
    if (!q.try_lease(e, l)) return;
    if (!e.whole()) return (void)atomicAdd_system(&story->torn, 1U);
    const u32 fate = (k * 2654435761U ^ dice) % 8;
    if (fate == 0) {
        if (!q.give_back(l)) atomicAdd_system(&story->foreign, 1U);
        return;
    }
    if (fate < 3) {
        kept[k] = l, number[k] = e.number;
        return;
    }
    atomicAdd_system(story->item + e.number, finishing);
    if (!q.commit(l)) return (void)atomicAdd_system(&story->foreign, 1U);
    atomicAdd_system(story->item + e.number, finished);
    atomicAdd_system(&story->done, 1U);
}

__global__ void commit_kept(view q, gpu_story* story, const queue_lease* kept, const u64* number) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (number[k] == ~u64{0}) return;
    atomicAdd_system(story->item + number[k], finishing);
    if (!q.commit(kept[k])) return (void)atomicAdd_system(&story->foreign, 1U);
    atomicAdd_system(story->item + number[k], finished);
    atomicAdd_system(&story->done, 1U);
}

__global__ void pop_some(view q, gpu_story* story) {
    element e;
    if (!q.try_pop(e)) return;
    if (!e.whole()) return (void)atomicAdd_system(&story->torn, 1U);
    atomicAdd_system(story->item + e.number, finished);
    atomicAdd_system(&story->done, 1U);
}

__global__ void submit_some(work_view w, gpu_story* story, u32 base, u32 count) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= count) return;
    if (w.try_submit(element::of(base + k))) atomicAdd_system(story->item + base + k, sent);
}

// Claims as many as there are threads; some fail, some are kept for commit_claims.
__global__ void claim_some(work_view w, gpu_story* story, u32 dice, claimed_task* kept, u64* number) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    element e;
    claimed_task t;
    number[k] = ~u64{0};
    if (!w.try_claim(e, t)) return;
    if (!e.whole()) return (void)atomicAdd_system(&story->torn, 1U);
    const u32 fate = (k * 2654435761U ^ dice) % 32;
    if (fate == 0) {
        if (!w.fail(t)) atomicAdd_system(&story->foreign, 1U);
        return;
    }
    if (fate < 8) {
        kept[k] = t, number[k] = e.number;
        return;
    }
    atomicAdd_system(story->item + e.number, finishing);
    if (!w.commit(t)) return (void)atomicAdd_system(&story->foreign, 1U);
    atomicAdd_system(story->item + e.number, finished);
    atomicAdd_system(&story->done, 1U);
}

__global__ void commit_claims(work_view w, gpu_story* story, const claimed_task* kept, const u64* number) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (number[k] == ~u64{0}) return;
    atomicAdd_system(story->item + number[k], finishing);
    if (!w.commit(kept[k])) return (void)atomicAdd_system(&story->foreign, 1U);
    atomicAdd_system(story->item + number[k], finished);
    atomicAdd_system(&story->done, 1U);
}

__global__ void go_in(permit_view p, gpu_story* story, u32 epoch, u32* found) {
    *found = 0;
    if (!p.granted()) return;
    *found = atomicExch_system(&story->inside, epoch);
    atomicAdd_system(&story->turns, 1U);
}
__global__ void go_out(permit_view p, gpu_story* story, u32 epoch) {
    if (!p.granted()) return;
    if (atomicCAS_system(&story->inside, epoch, 0U) != epoch) atomicAdd_system(&story->foreign, 1U);
}

__global__ void fill_block(u64* at, u64 words, u64 value) {
    for (u64 k = blockIdx.x * blockDim.x + threadIdx.x; k < words; k += gridDim.x * blockDim.x)
        at[k] = value + k;
}
__global__ void check_block(const u64* at, u64 words, u64 value, gpu_story* story) {
    for (u64 k = blockIdx.x * blockDim.x + threadIdx.x; k < words; k += gridDim.x * blockDim.x)
        if (at[k] != value + k) atomicAdd_system(&story->overwritten, 1U);
}

void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "a client ends: %s\n", cudaGetErrorName(status));
    std::_Exit(9);
}

void die_if_reached(host_book& book) {
    u32 now = 0;
    check(cudaMemcpyFromSymbol(&now, reached, sizeof now));
    if (now == 0) return;
    ++book.at_step;
    ::kill(::getpid(), SIGKILL);
}

/// Uses all of them by turns. Leases, claims and a block outlive the deed that has taken them, so a death
/// strikes what is held in each.
class client {
public:
    explicit client(const client_words& w)
        : book_(map_book(w.book)), number_of_client_(w.number), random_(w.seed), gpu_(on(w.device, w.space)) {
        story_ = reinterpret_cast<gpu_story*>(gpu_.at(w.story));
        leased_ = dying(gpu_.queue<element>("leased", queue_elements).device());
        popped_ = dying(gpu_.queue<element>("popped", queue_elements).device());
        const auto tasks = gpu_.work_queue<element>("work", queue_elements, work_attempts).device();
        work_ = work_view(tasks.parts(), tasks.epoch());
        epoch_ = tasks.epoch();
        for (u64** number : {&leased_number_, &claimed_number_}) {
            check(cudaMalloc(number, threads * sizeof(u64)));
            check(cudaMemset(*number, 0xFF, threads * sizeof(u64)));
        }
        check(cudaMalloc(&leases_, threads * sizeof(queue_lease)));
        check(cudaMalloc(&claims_, threads * sizeof(claimed_task)));
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        check(cudaMallocHost(&found_, most_turns * sizeof *found_));
        const shm::process_id me = shm::this_process();
        book_.life[epoch_ & 0xFFFFU].start_time = me.start_time;
        book_.life[epoch_ & 0xFFFFU].pid = static_cast<u32>(me.pid);
        const u32 nth = 1 + static_cast<u32>(random_() % 40);
        check(cudaMemcpyToSymbol(deadly_step, &w.step, sizeof w.step));
        check(cudaMemcpyToSymbol(passages, &nth, sizeof nth));
    }
    [[noreturn]] void run() {
        for (;; ++book_.deeds) {
            switch (random_() % 8) {
                case 0:
                case 1:
                    use_leases();
                    break;
                case 2:
                case 3:
                    use_pops();
                    break;
                case 4:
                case 5:
                    use_work_queue();
                    break;
                case 6:
                    use_semaphore();
                    break;
                default:
                    use_pool();
            }
            check(cudaGetLastError());
            check(cudaDeviceSynchronize());
            book_.ready[number_of_client_] = 1;
            die_if_reached(book_);
        }
    }

private:
    static constexpr u32 blocks = 2, block_threads = 64, threads = blocks * block_threads, most_turns = 4;

    static gpu_space on(int device, const std::string& space) {
        check(cudaSetDevice(device));
        return gpu_space(open(space));
    }
    static view dying(const queue_view<element>& q) { return {q.parts(), q.epoch()}; }

    void push(const view& q, u32 which) {
        const u32 count = 1 + static_cast<u32>(random_() % threads);
        if (const auto base = items(which, count))
            push_some<<<blocks, block_threads>>>(q, story_, *base, count);
    }
    void use_leases() {
        if (random_() % 2 == 0) return push(leased_, 0);
        commit_kept<<<blocks, block_threads>>>(leased_, story_, leases_, leased_number_);
        lease_some<<<blocks, block_threads>>>(leased_, story_, dice(), leases_, leased_number_);
    }
    void use_pops() {
        if (random_() % 2 == 0) return push(popped_, 1);
        pop_some<<<blocks, block_threads>>>(popped_, story_);
    }
    void use_work_queue() {
        if (random_() % 2 == 0) {
            const u32 count = 1 + static_cast<u32>(random_() % threads);
            if (const auto base = items(2, count))
                submit_some<<<blocks, block_threads>>>(work_, story_, *base, count);
            return;
        }
        commit_claims<<<blocks, block_threads>>>(work_, story_, claims_, claimed_number_);
        claim_some<<<blocks, block_threads>>>(work_, story_, dice(), claims_, claimed_number_);
    }

    void use_semaphore() {
        gpu_semaphore turn = gpu_.semaphore("turn", 1);
        const u32 several = 1 + static_cast<u32>(random_() % most_turns);
        for (u32 k = 0; k < several; ++k) {
            stream_permit p = turn.acquire(stream_, std::chrono::milliseconds(1 + random_() % 100));
            found_[k] = 0;
            if (random_() % 16 == 0) continue;  // it lets go of what it has asked for
            go_in<<<1, 1, 0, stream_>>>(p.device(), story_, epoch_, found_ + k);
            go_out<<<1, 1, 0, stream_>>>(p.device(), story_, epoch_);
            p.release(stream_);
        }
        check(cudaStreamSynchronize(stream_));
        for (u32 k = 0; k < several; ++k) {
            const auto& l = book_.life[found_[k] & 0xFFFFU];
            if (found_[k] != 0 && found_[k] != epoch_ &&
                shm::is_alive({static_cast<i32>(l.pid.load()), l.start_time.load()}))
                book_.find("a permit was out twice");
        }
    }

    void use_pool() {
        if (block_) {  // from a deed before
            check_block<<<16, 256>>>(words(), block_->data().size() / sizeof(u64), value_, story_);
            check(cudaDeviceSynchronize());
            block_.reset();
        }
        block_ = gpu_.pool("pages", pool_bytes).try_acquire(1 + random_() % (pool_bytes / 6));
        if (!block_) return;
        value_ = random_();
        fill_block<<<16, 256>>>(words(), block_->data().size() / sizeof(u64), value_);
    }
    [[nodiscard]] u64* words() const { return reinterpret_cast<u64*>(block_->data().data()); }

    /// So many numbers that nobody has had; none when all have been used.
    [[nodiscard]] std::optional<u32> items(u32 which, u32 count) {
        if (book_.next_item[which] + count > items_each) return std::nullopt;
        const u32 base = book_.next_item[which].fetch_add(count);
        if (base + count > items_each) return std::nullopt;
        return which * items_each + base;
    }
    [[nodiscard]] u32 dice() { return static_cast<u32>(random_()); }

    host_book& book_;
    u32 number_of_client_, epoch_ = 0;
    std::mt19937_64 random_;
    gpu_space gpu_;
    gpu_story* story_ = nullptr;
    view leased_, popped_;
    work_view work_;
    queue_lease* leases_ = nullptr;
    claimed_task* claims_ = nullptr;
    u64 *leased_number_ = nullptr, *claimed_number_ = nullptr;
    cudaStream_t stream_ = nullptr;
    u32* found_ = nullptr;
    std::optional<held_block> block_;
    u64 value_ = 0;
};

// By one thread, for the checks behind it all.
__global__ void drain(queue_view<element> q, gpu_story* story, bool leases, u32* room) {
    element e;
    queue_lease l;
    while (leases ? q.try_lease(e, l) : q.try_pop(e)) {
        if (!e.whole()) ++story->torn;
        if (e.whole()) atomicAdd_system(story->item + e.number, finished);
        if (leases && !q.commit(l)) ++story->foreign;
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
        if (!w.commit(t)) ++story->foreign;
    }
    while (w.take_dead_letter(e)) atomicAdd_system(story->item + e.number, letters);
    *room = 0;
    while (w.try_submit(element::of(most_items - 1))) ++*room;
    while (w.try_claim(e, t)) w.commit(t);
}

}  // namespace

void client_main(const client_words& w) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    client(w).run();
}

int number_of_gpus() {
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}

final_look look_at_last(const std::string& space, u64 story_offset) {
    gpu_space gpu(open(space));
    final_look out;
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
    return out;
}

}  // namespace carousel::test
