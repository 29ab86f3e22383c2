#include "bench/ipc/cuda/kernels.hpp"

#include <cuda/atomic>
#include <cuda/semaphore>
#include <new>
#include <thread>

#include "bench/ipc/cuda/gpu_parts.hpp"
#include "core/clock.hpp"
#include "ipc/cuda/carousel/ipc_cuda.cuh"

namespace carousel::bench {
namespace {

using gpu::check;

constexpr u32 most_threads = 32, each = 64;  // threads per block; operations per thread in a kernel
constexpr u64 kernel_budget_ns = 500'000;    // the kernel ends after this time even if a wait is unfinished:
                                           // the awaited process may be unable to run until this kernel ends
constexpr u64 settle_ns = 4'000'000'000;
constexpr u32 queue_length = 1024, block_bytes = 65536;
constexpr auto permit_patience = std::chrono::milliseconds(500);

/// The results of a round's kernels: sums over their threads.
struct counts {
    unsigned long long operations, timed_ns, in, out, undelivered;
};

// ---- queues: each thread pushes one element and pops one. A pop that is still pending is completed by the
// next kernel.

template <class Put, class Get>
__device__ void put_and_get(counts* c, u32* pending, u64 first, bool settles, Put put, Get get) {
    const u32 me = blockIdx.x * blockDim.x + threadIdx.x;
    u32 mine = pending[me];
    u64 operations = 0, timed = 0, in = 0, out = 0;
    const u64 begun = ipc::detail::gpu_clock_ns();
    for (u64 now = begun; operations < each && now - begun < kernel_budget_ns;) {
        if (settles && mine == 0) break;
        u64 value = first + me;
        const bool well = mine == 0 ? put(value) : get(value);
        const u64 then = now;
        now = ipc::detail::gpu_clock_ns();
        if (!well) {
            __nanosleep(200);
            continue;
        }
        timed += now - then;
        in += mine == 0 ? value : 0, out += mine == 0 ? 0 : value, operations += mine;
        mine = 1 - mine;
    }
    pending[me] = mine;
    atomicAdd(&c->operations, operations), atomicAdd(&c->timed_ns, timed);
    atomicAdd(&c->in, in), atomicAdd(&c->out, out), atomicAdd(&c->undelivered, mine);
}

__global__ void use_queue(ipc::queue_view<u64> q, counts* c, u32* pending, u64 first, bool settles) {
    put_and_get(
        c, pending, first, settles, [&](u64 v) { return q.try_push(v); },
        [&](u64& v) { return q.try_pop(v); });
}
__global__ void use_tasks(ipc::work_queue_view<u64> w, counts* c, u32* pending, u64 first, bool settles) {
    put_and_get(
        c, pending, first, settles, [&](u64 v) { return w.try_submit(v); },
        [&](u64& v) {
            ipc::claimed_task t;
            return w.try_claim(v, t) && w.commit(t);
        });
}

// The libcu++ counterpart: each cell has a turn word, and tickets are drawn by fetch_add. A thread that dies
// with a ticket would block the ring. All threads of one process run on the GPU concurrently, so each wait
// ends.
struct ticket_ring {
    using atomic = ::cuda::atomic<u64, ::cuda::thread_scope_device>;
    atomic head, tail;
    struct {
        atomic turn;
        u64 value;
    } cell[queue_length];
    __device__ void wait_for(atomic& turn, u64 value) {
        while (turn.load(::cuda::memory_order_acquire) != value) __nanosleep(20);
    }
    __device__ void push(u64 v) {
        const u64 t = tail.fetch_add(1, ::cuda::memory_order_relaxed);
        auto& c = cell[t % queue_length];
        wait_for(c.turn, t / queue_length * 2);
        c.value = v;
        c.turn.store(t / queue_length * 2 + 1, ::cuda::memory_order_release);
    }
    __device__ u64 pop() {
        const u64 t = head.fetch_add(1, ::cuda::memory_order_relaxed);
        auto& c = cell[t % queue_length];
        wait_for(c.turn, t / queue_length * 2 + 1);
        const u64 v = c.value;
        c.turn.store(t / queue_length * 2 + 2, ::cuda::memory_order_release);
        return v;
    }
};
__global__ void use_ring(ticket_ring* q, counts* c, u32* pending, u64 first) {
    put_and_get(
        c, pending, first, false,
        [&](u64 v) {
            q->push(v);
            return true;
        },
        [&](u64& v) {
            v = q->pop();
            return true;
        });
}
// A thread pushes one element before each pop, so at most one pop per thread is pending, and the ring
// contains an element for each pending pop.
__global__ void empty_ring(ticket_ring* q, counts* c, u32* pending) {
    const u32 me = blockIdx.x * blockDim.x + threadIdx.x;
    if (pending[me] != 0) atomicAdd(&c->out, q->pop());
    pending[me] = 0;
}

// ---- a semaphore of one permit

// Only the holder of the permit changes the count. The sum is therefore right only if two threads never hold
// the permit at the same time.
__device__ void raise(volatile unsigned long long* count) { *count = *count + 1; }

struct one_permit {
    ::cuda::counting_semaphore<::cuda::thread_scope_device, 1> permits{1};
    unsigned long long count = 0;
};
__global__ void make_permit(one_permit* at) { new (at) one_permit; }
__global__ void take_turns(one_permit* p, counts* c) {
    const u64 begun = ipc::detail::gpu_clock_ns();
    for (u32 k = 0; k < each; ++k) {
        p->permits.acquire();
        raise(&p->count);
        p->permits.release();
    }
    atomicAdd(&c->timed_ns, ipc::detail::gpu_clock_ns() - begun);
    atomicAdd(&c->operations, each), atomicAdd(&c->in, each);
}
__global__ void count_turn(ipc::permit_view p, unsigned long long* count, counts* c) {
    if (!p.granted()) return;
    raise(count);
    ++c->operations, ++c->in;
}

// ---- a word

__global__ void add_to(unsigned long long* word, counts* c) {
    const ::cuda::atomic_ref<unsigned long long, ::cuda::thread_scope_system> at(*word);
    const u64 begun = ipc::detail::gpu_clock_ns();
    for (u32 k = 0; k < each; ++k) at.fetch_add(1, ::cuda::memory_order_relaxed);
    atomicAdd(&c->timed_ns, ipc::detail::gpu_clock_ns() - begun);
    atomicAdd(&c->operations, each), atomicAdd(&c->in, each);
}

template <class T>
T* zeroed(u64 number = 1) {
    void* at = nullptr;
    check(cudaMalloc(&at, number * sizeof(T)), "cudaMalloc");
    check(cudaMemset(at, 0, number * sizeof(T)), "cudaMemset");
    // needed because the streams of this file do not wait for the cudaMemset
    check(cudaDeviceSynchronize(), "cudaMemset");
    return static_cast<T*>(at);
}

class kernel_worker final : public crew_worker {
public:
    kernel_worker(const std::string& space, u32 worker)
        : worker_(worker),
          gpu_(ipc::open(space)),
          queue_(gpu_.queue<u64>("queue in kernels", queue_length).device()),
          tasks_(gpu_.work_queue<u64>("tasks in kernels", queue_length).device()),
          turn_(gpu_.semaphore("turn in streams", 1)),
          pool_(gpu_.pool("blocks", 64 * block_bytes, block_bytes)) {
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        counts_ = zeroed<counts>();
        pending_ = zeroed<u32>(most_kernel_workers * most_threads);
        ring_ = zeroed<ticket_ring>();
        permit_ = zeroed<one_permit>();
        own_word_ = zeroed<unsigned long long>();
        make_permit<<<1, 1, 0, stream_>>>(permit_);
        // The shared words are at the end of the space's GPU memory, where no primitive is placed.
        shared_ = reinterpret_cast<unsigned long long*>(gpu_.at(gpu_.bytes() - 256, 256));
        end_of_kernel();
        for (u32 what = 0; what < std::size(kernel_contenders); ++what) before_[what] = word(shared_of(what));
    }

    crew_work run(u32 what, u32 count, const std::atomic<u32>& stop) override {
        forget();
        const kernel_contender& c = kernel_contenders[what];
        blocks_ = c.processes ? 1 : count, threads_ = c.threads;
        if (c.kind == kernel_kind::pool) return use_pool(stop);
        if (c.kind == kernel_kind::allocator) return use_allocator(count, stop);
        const u64 begun = now_ns();
        while (stop.load(std::memory_order_relaxed) == 0) one_kernel(what, false);
        const u64 ns = now_ns() - begun;
        const counts n = read_counts();
        return {n.operations, c.kind == kernel_kind::stream_semaphore ? ns : n.timed_ns};
    }

    void settle(u32 what, u64& in, u64& out) override {
        const kernel_kind kind = kernel_contenders[what].kind;
        const u64 until = now_ns() + settle_ns;
        if (kind == kernel_kind::queue || kind == kernel_kind::tasks)
            do {  // the queue contains elements that other workers have pushed and not yet popped
                check(cudaMemsetAsync(&counts_->undelivered, 0, sizeof counts_->undelivered, stream_),
                      "cudaMemset");
                one_kernel(what, true);
            } while (read_counts().undelivered != 0 && now_ns() < until);
        if (kind == kernel_kind::ring)
            empty_ring<<<blocks_, threads_, 0, stream_>>>(ring_, counts_, pending_);
        end_of_kernel();
        const counts c = read_counts();
        in = c.in, out = c.out;
        if (worker_ == 0 && shared_of(what) != nullptr) {
            const u64 now = word(shared_of(what));
            out = now - before_[what], before_[what] = now;
        }
        if (kind == kernel_kind::pool && worker_ == 0) {  // all blocks have been returned
            const ipc::pool_state s = pool_.state();
            in = s.bytes, out = s.free_bytes;
        }
    }

private:
    /// Returns the word that all participants add to, or null.
    [[nodiscard]] unsigned long long* shared_of(u32 what) const {
        const kernel_contender& c = kernel_contenders[what];
        if (c.kind == kernel_kind::word) return c.processes ? shared_ : own_word_;
        if (c.kind == kernel_kind::stream_semaphore) return shared_ + 16;
        return c.kind == kernel_kind::semaphore ? &permit_->count : nullptr;
    }
    void one_kernel(u32 what, bool settles) {
        const u64 first = u64{worker_ + 1} << 32U | ++kernels_ << 12U;
        switch (kernel_contenders[what].kind) {
            case kernel_kind::word:
                add_to<<<blocks_, threads_, 0, stream_>>>(shared_of(what), counts_);
                break;
            case kernel_kind::queue:
                use_queue<<<blocks_, threads_, 0, stream_>>>(queue_, counts_, pending_, first, settles);
                break;
            case kernel_kind::tasks:
                use_tasks<<<blocks_, threads_, 0, stream_>>>(tasks_, counts_, pending_, first, settles);
                break;
            case kernel_kind::ring:
                use_ring<<<blocks_, threads_, 0, stream_>>>(ring_, counts_, pending_, first);
                break;
            case kernel_kind::stream_semaphore:
                for (u32 k = 0; k < 4; ++k) {
                    ipc::stream_permit p = turn_.acquire(stream_, permit_patience);
                    count_turn<<<1, 1, 0, stream_>>>(p.device(), shared_of(what), counts_);
                    p.release(stream_);
                }
                break;
            case kernel_kind::semaphore:
                take_turns<<<blocks_, 1, 0, stream_>>>(permit_, counts_);
                break;
            case kernel_kind::pool:
            case kernel_kind::allocator:
                break;
        }
        end_of_kernel();
    }
    crew_work use_pool(const std::atomic<u32>& stop) {
        u64 n = 0;
        const u64 begun = now_ns();
        for (; stop.load(std::memory_order_relaxed) == 0; ++n)
            (void)pool_.acquire(block_bytes, std::chrono::seconds(2));
        return {n, now_ns() - begun};
    }
    /// The fastest allocation within one process: each thread has its own stream, and the memory pool never
    /// returns memory to the system.
    static crew_work use_allocator(u32 count, const std::atomic<u32>& stop) {
        cudaMemPool_t pool = nullptr;
        u64 keep = ~u64{0};
        check(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
        check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
              "cudaMemPoolSetAttribute");
        std::atomic<u64> n{0}, ns{0}, failed{0};
        std::vector<std::thread> all;
        for (u32 k = 0; k < count; ++k)
            all.emplace_back([&] {
                cudaStream_t s = nullptr;
                bool well = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) == cudaSuccess;
                u64 mine = 0;
                const u64 begun = now_ns();
                for (; well && stop.load(std::memory_order_relaxed) == 0; ++mine) {
                    void* at = nullptr;
                    well = cudaMallocAsync(&at, block_bytes, s) == cudaSuccess &&
                           cudaFreeAsync(at, s) == cudaSuccess;
                }
                well = cudaStreamSynchronize(s) == cudaSuccess && well;
                n += mine, ns += now_ns() - begun, failed += well ? 0 : 1;
                (void)cudaStreamDestroy(s);
            });
        for (std::thread& t : all) t.join();
        if (failed != 0) throw device_error("cudaMallocAsync or cudaFreeAsync failed in one of the threads");
        return {n, ns};
    }
    void end_of_kernel() const {
        check(cudaGetLastError(), "a kernel of the bench");
        check(cudaStreamSynchronize(stream_), "a kernel of the bench");
    }
    void forget() const {
        check(cudaMemsetAsync(counts_, 0, sizeof *counts_, stream_), "cudaMemset");
        end_of_kernel();
    }
    [[nodiscard]] counts read_counts() const {
        counts c{};
        check(cudaMemcpyAsync(&c, counts_, sizeof c, cudaMemcpyDeviceToHost, stream_), "cudaMemcpy");
        end_of_kernel();
        return c;
    }
    [[nodiscard]] u64 word(const unsigned long long* at) const {
        u64 w = 0;
        if (at == nullptr) return 0;
        check(cudaMemcpyAsync(&w, at, sizeof w, cudaMemcpyDeviceToHost, stream_), "cudaMemcpy");
        end_of_kernel();
        return w;
    }

    u32 worker_, blocks_ = 1, threads_ = 1;
    u64 kernels_ = 0;
    u64 before_[std::size(kernel_contenders)] = {};  // of shared_of(), between rounds
    ipc::gpu_space gpu_;
    ipc::queue_view<u64> queue_;
    ipc::work_queue_view<u64> tasks_;
    ipc::gpu_semaphore turn_;
    ipc::shared_pool pool_;
    cudaStream_t stream_ = nullptr;
    counts* counts_ = nullptr;
    u32* pending_ = nullptr;
    ticket_ring* ring_ = nullptr;
    one_permit* permit_ = nullptr;
    unsigned long long *own_word_ = nullptr, *shared_ = nullptr;
};

}  // namespace

std::unique_ptr<crew_worker> make_kernel_worker(const std::string& space, u32 worker) {
    check(cudaSetDevice(0), "cudaSetDevice");
    return std::make_unique<kernel_worker>(space, worker);
}

}  // namespace carousel::bench
