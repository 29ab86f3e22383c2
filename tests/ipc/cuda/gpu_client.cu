// A process of gpu_kills.cpp: it uses every primitive of the space concurrently, each in a thread and a
// stream of its own, until it is killed, or until a thread of a kernel reaches a named step: that thread
// stops there, and the process kills itself after the kernel, with what the step leaves.
#include "gpu_client.cuh"

#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <random>
#include <thread>

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
inline constexpr u64 none = ~u64{0};  ///< no number of an element
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
    number[k] = none;
    if (!q.try_lease(e, l)) return;
    if (!e.whole()) return (void)atomicAdd_system(&story->torn, 1U);
    const u32 fate = (k * 2654435761U ^ dice) % 8;
    if (fate == 0) {
        if (!q.requeue(l)) atomicAdd_system(&story->not_owned, 1U);
        return;
    }
    if (fate < 3) {
        kept[k] = l, number[k] = e.number;
        return;
    }
    atomicAdd_system(story->item + e.number, finishing);
    if (!q.commit(l)) return (void)atomicAdd_system(&story->not_owned, 1U);
    atomicAdd_system(story->item + e.number, finished);
    atomicAdd_system(&story->done, 1U);
}

__global__ void commit_kept(view q, gpu_story* story, const queue_lease* kept, const u64* number) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (number[k] == none) return;
    atomicAdd_system(story->item + number[k], finishing);
    if (!q.commit(kept[k])) return (void)atomicAdd_system(&story->not_owned, 1U);
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
    number[k] = none;
    if (!w.try_claim(e, t)) return;
    if (!e.whole()) return (void)atomicAdd_system(&story->torn, 1U);
    const u32 fate = (k * 2654435761U ^ dice) % 32;
    if (fate == 0) {
        if (!w.fail(t)) atomicAdd_system(&story->not_owned, 1U);
        return;
    }
    if (fate < 8) {
        kept[k] = t, number[k] = e.number;
        return;
    }
    atomicAdd_system(story->item + e.number, finishing);
    if (!w.commit(t)) return (void)atomicAdd_system(&story->not_owned, 1U);
    atomicAdd_system(story->item + e.number, finished);
    atomicAdd_system(&story->done, 1U);
}

__global__ void commit_claims(work_view w, gpu_story* story, const claimed_task* kept, const u64* number) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (number[k] == none) return;
    atomicAdd_system(story->item + number[k], finishing);
    if (!w.commit(kept[k])) return (void)atomicAdd_system(&story->not_owned, 1U);
    atomicAdd_system(story->item + number[k], finished);
    atomicAdd_system(&story->done, 1U);
}

__global__ void enter_permit(permit_view p, gpu_story* story, u32 epoch, u32* found) {
    *found = 0;
    if (!p.granted()) return;
    *found = atomicExch_system(&story->inside, epoch);
    atomicAdd_system(&story->turns, 1U);
}
__global__ void leave_permit(permit_view p, gpu_story* story, u32 epoch) {
    if (!p.granted()) return;
    if (atomicCAS_system(&story->inside, epoch, 0U) != epoch) atomicAdd_system(&story->not_owned, 1U);
}

__global__ void fill_block(u64* at, u64 words, u64 value) {
    for (u64 k = blockIdx.x * blockDim.x + threadIdx.x; k < words; k += gridDim.x * blockDim.x)
        at[k] = value + k;
}
__global__ void check_block(const u64* at, u64 words, u64 value, gpu_story* story) {
    for (u64 k = blockIdx.x * blockDim.x + threadIdx.x; k < words; k += gridDim.x * blockDim.x)
        if (at[k] != value + k) atomicAdd_system(&story->overwritten, 1U);
}

/// Shared by all threads of a process. Numbers of elements are drawn from the book, so no other process has
/// them.
struct common {
    host_book& book;
    gpu_space& gpu;
    gpu_story* story;
    u32 client, epoch;

    /// The next N numbers; none when all have been used.
    [[nodiscard]] std::optional<u32> items(u32 which, u32 count) const {
        if (book.next_item[which] + count > items_each) return std::nullopt;
        const u32 base = book.next_item[which].fetch_add(count);
        if (base + count > items_each) return std::nullopt;
        return which * items_each + base;
    }
    void die_if_reached() const {
        u32 now = 0;
        check(cudaMemcpyFromSymbol(&now, reached, sizeof now));
        if (now == 0) return;
        static std::atomic<u32> first{0};
        if (first.exchange(1) == 0) ++book.at_step;
        ::kill(::getpid(), SIGKILL);
    }
};

constexpr u32 blocks = 2, block_threads = 64, threads = blocks * block_threads, most_turns = 4;

/// One primitive of the space in one thread, operation after operation.
class user {
public:
    user(const common& all, primitive which, u64 seed) : all_(all), which_(which), random_(seed) {
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
    virtual ~user() = default;
    user(const user&) = delete;
    user& operator=(const user&) = delete;
    [[noreturn]] void run(int device) {
        check(cudaSetDevice(device));
        for (;;) {
            in_use() = 1;
            operation();
            check(cudaGetLastError());
            check(cudaStreamSynchronize(stream_));
            all_.die_if_reached();
            ++all_.book.operations, ++operations_;
            in_use() = holds() ? 1 : 0;
            std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
        }
    }
    [[nodiscard]] bool has_begun() const { return operations_ > 0; }

protected:
    virtual void operation() = 0;
    /// The state that it keeps from one operation to the next.
    [[nodiscard]] virtual bool holds() const { return false; }
    std::atomic<u32>& in_use() const { return all_.book.in_use[all_.client][which_]; }
    /// The numbers of the leases or claims that one operation keeps for the next: none at first. Page-locked,
    /// so that this side can also read them.
    static u64* no_numbers() {
        u64* number = nullptr;
        check(cudaMallocHost(&number, threads * sizeof(u64)));
        std::fill_n(number, threads, none);
        return number;
    }
    static bool any(const u64* number) {
        return std::any_of(number, number + threads, [](u64 n) { return n != none; });
    }
    [[nodiscard]] u32 dice() { return static_cast<u32>(random_()); }
    const common& all_;
    primitive which_;
    std::mt19937_64 random_;
    cudaStream_t stream_ = nullptr;
    std::atomic<u32> operations_{0};
};

class queue_user final : public user {
public:
    queue_user(const common& all, u64 seed)
        : user(all, of_queue, seed),
          leased_(dying(all.gpu.queue<element>("leased", queue_elements).device())),
          popped_(dying(all.gpu.queue<element>("popped", queue_elements).device())),
          number_(no_numbers()) {
        check(cudaMalloc(&leases_, threads * sizeof(queue_lease)));
    }

private:
    [[nodiscard]] bool holds() const override { return any(number_); }
    static view dying(const queue_view<element>& q) { return {q.parts(), q.epoch()}; }
    void push(const view& q, u32 which) {
        const u32 count = 1 + dice() % threads;
        if (const auto base = all_.items(which, count))
            push_some<<<blocks, block_threads, 0, stream_>>>(q, all_.story, *base, count);
    }
    void operation() override {
        switch (dice() % 4) {
            case 0:
                return push(leased_, 0);
            case 1:
                return push(popped_, 1);
            case 2:
                pop_some<<<blocks, block_threads, 0, stream_>>>(popped_, all_.story);
                return;
            default:
                commit_kept<<<blocks, block_threads, 0, stream_>>>(leased_, all_.story, leases_, number_);
                lease_some<<<blocks, block_threads, 0, stream_>>>(leased_, all_.story, dice(), leases_,
                                                                  number_);
        }
    }
    view leased_, popped_;
    u64* number_;
    queue_lease* leases_ = nullptr;
};

class work_user final : public user {
public:
    work_user(const common& all, u64 seed) : user(all, of_work_queue, seed), number_(no_numbers()) {
        const auto tasks = all.gpu.work_queue<element>("work", queue_elements, work_attempts).device();
        work_ = work_view(tasks.parts(), tasks.epoch());
        check(cudaMalloc(&claims_, threads * sizeof(claimed_task)));
    }

private:
    [[nodiscard]] bool holds() const override { return any(number_); }
    void operation() override {
        if (dice() % 2 == 0) {
            const u32 count = 1 + dice() % threads;
            if (const auto base = all_.items(2, count))
                submit_some<<<blocks, block_threads, 0, stream_>>>(work_, all_.story, *base, count);
            return;
        }
        commit_claims<<<blocks, block_threads, 0, stream_>>>(work_, all_.story, claims_, number_);
        claim_some<<<blocks, block_threads, 0, stream_>>>(work_, all_.story, dice(), claims_, number_);
    }
    work_view work_;
    u64* number_;
    claimed_task* claims_ = nullptr;
};

class semaphore_user final : public user {
public:
    semaphore_user(const common& all, u64 seed)
        : user(all, of_semaphore, seed), turn_(all.gpu.semaphore("turn", 1)) {
        check(cudaMallocHost(&found_, most_turns * sizeof *found_));
    }

private:
    void operation() override {
        const u32 several = 1 + dice() % most_turns;
        for (u32 k = 0; k < several; ++k) {
            stream_permit p = turn_.acquire(stream_, std::chrono::milliseconds(1 + dice() % 100));
            found_[k] = 0;
            if (dice() % 16 == 0) continue;  // it abandons what it has requested
            enter_permit<<<1, 1, 0, stream_>>>(p.device(), all_.story, all_.epoch, found_ + k);
            leave_permit<<<1, 1, 0, stream_>>>(p.device(), all_.story, all_.epoch);
            p.release(stream_);
        }
        check(cudaStreamSynchronize(stream_));
        for (u32 k = 0; k < several; ++k) {
            const auto& l = all_.book.process[found_[k] & 0xFFFFU];
            if (found_[k] != 0 && found_[k] != all_.epoch &&
                shm::is_alive({static_cast<i32>(l.pid.load()), l.start_time.load()}))
                all_.book.find("a permit was out twice");
        }
    }
    gpu_semaphore turn_;
    u32* found_ = nullptr;
};

class pool_user final : public user {
public:
    pool_user(const common& all, u64 seed)
        : user(all, of_pool, seed), pool_(all.gpu.pool("pages", pool_bytes)) {}

private:
    void operation() override {
        if (block_) {  // from an earlier operation
            check_block<<<16, 256, 0, stream_>>>(words(), size(), value_, all_.story);
            check(cudaStreamSynchronize(stream_));
            block_.reset();
        }
        block_ = pool_.try_acquire(1 + random_() % (pool_bytes / 6));
        if (!block_) return;
        value_ = random_();
        fill_block<<<16, 256, 0, stream_>>>(words(), size(), value_);
    }
    [[nodiscard]] bool holds() const override { return block_.has_value(); }
    [[nodiscard]] u64* words() const { return reinterpret_cast<u64*>(block_->data().data()); }
    [[nodiscard]] u64 size() const { return block_->data().size() / sizeof(u64); }
    shared_pool pool_;
    std::optional<held_block> block_;
    u64 value_ = 0;
};

}  // namespace

void client_main(const client_words& w) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    host_book& book = map_book(w.book);
    check(cudaSetDevice(w.device));
    gpu_space gpu(open(w.space));
    std::mt19937_64 random(w.seed);
    const u32 epoch = gpu.queue<element>("leased", queue_elements).device().epoch();
    const common all{book, gpu, reinterpret_cast<gpu_story*>(gpu.at(w.story)), w.number, epoch};
    const shm::process_id me = shm::this_process();
    book.process[epoch & 0xFFFFU].start_time = me.start_time;
    book.process[epoch & 0xFFFFU].pid = static_cast<u32>(me.pid);
    const u32 nth = 1 + static_cast<u32>(random() % 40);
    check(cudaMemcpyToSymbol(deadly_step, &w.step, sizeof w.step));
    check(cudaMemcpyToSymbol(passages, &nth, sizeof nth));
    pool_user pool(all, random());
    semaphore_user semaphore(all, random());
    queue_user queue(all, random());
    work_user work(all, random());
    user* const users[] = {&pool, &semaphore, &queue, &work};
    for (user* u : users) std::thread([u, &w] { u->run(w.device); }).detach();
    for (;;) {
        if (std::all_of(std::begin(users), std::end(users), [](const user* u) { return u->has_begun(); }))
            book.ready[w.number] = epoch;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace carousel::test
