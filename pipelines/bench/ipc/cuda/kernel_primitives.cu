#include "bench/ipc/cuda/kernel_primitives.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cuda/atomic>
#include <cuda/semaphore>
#include <memory>

#include "core/errors.hpp"
#include "ipc/cuda/carousel/ipc_cuda.cuh"

namespace carousel::bench {
namespace {

constexpr u32 threads = 32, each = 64;  ///< operations of a thread in a kernel
constexpr u32 queue_length = 1024;

void check(cudaError_t status) {
    if (status != cudaSuccess) throw device_error(cudaGetErrorString(status));
}

/// Zeroed GPU memory of this process.
template <class T>
T* zeroed() {
    void* at = nullptr;
    check(cudaMalloc(&at, sizeof(T)));
    check(cudaMemset(at, 0, sizeof(T)));
    return static_cast<T*>(at);
}

struct device_sums {
    unsigned long long pushed, popped, wrong;
};

/// Launches `kernel` until it is told to stop; so many operations each.
template <class Kernel>
worker_loop kernels_until(u64 operations, Kernel kernel) {
    return [=](const std::atomic<u32>& stop) {
        u64 n = 0;
        for (; stop.load(std::memory_order_relaxed) == 0; n += operations) {
            kernel();
            check(cudaGetLastError());
            check(cudaDeviceSynchronize());
        }
        return n;
    };
}

// ---- a queue: each thread pushes one and pops one

__global__ void push_and_pop(ipc::queue_view<u64> q, device_sums* s, u64 first) {
    const u64 me = first + blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 k = 0; k < each; ++k) {
        u64 got = 0;
        if (!q.push(me * each + k, 100'000'000) || !q.pop(got, 100'000'000)) atomicAdd(&s->wrong, 1ULL);
        atomicAdd(&s->pushed, me * each + k);
        atomicAdd(&s->popped, got);
    }
}

// What libcu++ offers for the same: cells with a turn each, tickets by fetch_add. Who dies with a ticket
// stops it.
struct ticket_ring {
    using atomic = ::cuda::atomic<u64, ::cuda::thread_scope_device>;
    atomic head, tail;
    struct {
        atomic turn;
        u64 value;
    } cell[queue_length];
    __device__ void push(u64 v) {
        const u64 t = tail.fetch_add(1, ::cuda::memory_order_relaxed);
        auto& c = cell[t % queue_length];
        while (c.turn.load(::cuda::memory_order_acquire) != t / queue_length * 2) __nanosleep(20);
        c.value = v;
        c.turn.store(t / queue_length * 2 + 1, ::cuda::memory_order_release);
    }
    __device__ u64 pop() {
        const u64 t = head.fetch_add(1, ::cuda::memory_order_relaxed);
        auto& c = cell[t % queue_length];
        while (c.turn.load(::cuda::memory_order_acquire) != t / queue_length * 2 + 1) __nanosleep(20);
        const u64 v = c.value;
        c.turn.store(t / queue_length * 2 + 2, ::cuda::memory_order_release);
        return v;
    }
};
__global__ void push_and_pop_peer(ticket_ring* q, device_sums* s) {
    const u64 me = blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 k = 0; k < each; ++k) {
        q->push(me * each + k);
        atomicAdd(&s->pushed, me * each + k);
        atomicAdd(&s->popped, q->pop());
    }
}

/// Adds up what the kernels of all rounds have found.
template <class Loop>
worker_loop and_sums(Loop loop, device_sums* from, kernel_sums& to) {
    return [=, &to](const std::atomic<u32>& stop) {
        const u64 n = loop(stop);
        device_sums s{};
        check(cudaMemcpy(&s, from, sizeof s, cudaMemcpyDeviceToHost));
        to.pushed.fetch_add(s.pushed), to.popped.fetch_add(s.popped), to.wrong.fetch_add(s.wrong);
        return n;
    };
}

// ---- a semaphore of one permit

struct one_permit {
    ::cuda::counting_semaphore<::cuda::thread_scope_device, 1> permits{1};
    u64 count = 0;
};
__global__ void make_permit(one_permit* at) { new (at) one_permit; }
__global__ void take_turns(one_permit* p) {
    for (u32 k = 0; k < each; ++k) {
        p->permits.acquire();
        ++p->count;
        p->permits.release();
    }
}
__global__ void count_turn(ipc::permit_view p, u64* count) {
    if (p.granted()) ++*count;
}

// ---- a word

__global__ void add_to(u64* word) {
    const ::cuda::atomic_ref<u64, ::cuda::thread_scope_system> at(*word);
    for (u32 k = 0; k < each; ++k) at.fetch_add(1, ::cuda::memory_order_relaxed);
}

}  // namespace

bool has_gpu() {
    const pid_t pid = ::fork();
    if (pid == 0) {
        int n = 0;
        ::_exit(cudaGetDeviceCount(&n) == cudaSuccess && n > 0 ? 0 : 1);
    }
    int status = 1;
    ::waitpid(pid, &status, 0);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

worker_loop queue_in_kernels(const std::string& space, kernel_sums& sums) {
    const auto gpu = std::make_shared<ipc::gpu_space>(ipc::open(space));
    const auto q = gpu->queue<u64>("queue", queue_length).device();
    auto* const s = zeroed<device_sums>();
    const u64 first = u64{q.epoch()} * threads;
    return and_sums(
        kernels_until(u64{threads} * each, [=] { push_and_pop<<<1, threads>>>(q, s, first), (void)gpu; }), s,
        sums);
}

worker_loop peer_queue(u32 blocks, kernel_sums& sums) {
    auto* const q = zeroed<ticket_ring>();
    auto* const s = zeroed<device_sums>();
    return and_sums(
        kernels_until(u64{blocks} * threads * each, [=] { push_and_pop_peer<<<blocks, threads>>>(q, s); }), s,
        sums);
}

worker_loop word_in_kernels(const std::string& space) {
    const auto gpu = std::make_shared<ipc::gpu_space>(ipc::open(space));
    auto* const word = reinterpret_cast<u64*>(gpu->at(gpu->bytes() - sizeof(u64), sizeof(u64)));
    return kernels_until(u64{threads} * each, [=] { add_to<<<1, threads>>>(word), (void)gpu; });
}

worker_loop peer_word(u32 blocks) {
    auto* const word = zeroed<u64>();
    return kernels_until(u64{blocks} * threads * each, [=] { add_to<<<blocks, threads>>>(word); });
}

worker_loop semaphore_in_streams(const std::string& space) {
    const auto gpu = std::make_shared<ipc::gpu_space>(ipc::open(space));
    const auto turn = std::make_shared<ipc::gpu_semaphore>(gpu->semaphore("turn in streams", 1));
    auto* const count = zeroed<u64>();
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return kernels_until(8, [=] {
        for (u32 k = 0; k < 8; ++k) {
            ipc::stream_permit p = turn->acquire(stream, std::chrono::seconds(5));
            count_turn<<<1, 1, 0, stream>>>(p.device(), count);
            p.release(stream);
        }
    });
}

worker_loop peer_semaphore(u32 blocks) {
    auto* const p = zeroed<one_permit>();
    make_permit<<<1, 1>>>(p);
    check(cudaDeviceSynchronize());
    return kernels_until(u64{blocks} * each, [=] { take_turns<<<blocks, 1>>>(p); });
}

}  // namespace carousel::bench
