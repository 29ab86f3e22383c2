// Implements one side of a hop between kernels. For each mechanism of synchronisation the two sides
// alternate; the first side also measures the time.
#include "bench/ipc/cuda/gpu_hop_sides.hpp"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "bench/ipc/cuda/gpu_parts.hpp"
#include "bench/ipc/cuda/kernels.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"

namespace carousel::bench::gpu {
namespace {

constexpr u64 patience_ns = 10'000'000'000;
constexpr u32 words_bytes = 2U << 20U, distance = 1024;  // distance: number of words from the word of one
                                                         // side to that of the other side
struct side {
    u32 number = 0;
    cudaStream_t stream = nullptr;
    cudaEvent_t mine = nullptr, theirs = nullptr;
    u32 *words = nullptr, *scratch = nullptr;  // scratch: counts this side's kernels or, with a single
                                               // spinning kernel, its turns
    u64* stamps = nullptr;                     // GPU clock readings: one per kernel launch or, with a single
                                               // spinning kernel, one per turn
};

/// Waits until the word has reached the value; returns false if the other side has failed or does not reply
/// in time.
bool meets(hop_board& b, std::atomic<u32>& word, u32 value) {
    const u64 end = now_ns() + patience_ns;
    for (u32 k = 0; word.load(std::memory_order_acquire) < value; ++k) {
        if (b.failed.load() != 0 || (k % 1024 == 1023 && now_ns() > end)) return false;
        if (k % 1024 == 1023) ::sched_yield();
    }
    return true;
}
bool meet(hop_board& b, u32& meetings) {
    ++b.ready;
    return meets(b, b.ready, 2 * ++meetings);
}
void require(bool met, const char* what) {
    if (!met) throw shm_error(std::string(what) + ": the other side of the hop did not start");
}
/// Takes this side's turns until `hops` round trips are complete; the first side begins. One kernel per turn.
void take_turns(hop_board& b, side& s, means by, u32 hops) {
    std::atomic<u32>&own = b.submitted[s.number], &other = b.submitted[1 - s.number];
    for (u32 k = 1; k <= hops; ++k) {
        const u32 before = s.number == 0 ? k - 1 : k;
        require(meets(b, other, before), means_names[by]);
        if (by == event_polled && before > 0) {
            const u64 end = now_ns() + patience_ns;
            cudaError_t e = cudaErrorNotReady;
            while ((e = cudaEventQuery(s.theirs)) == cudaErrorNotReady && now_ns() < end) {
            }
            check(e, "cudaEventQuery");
        }
        if (by == event_waited && before > 0)
            check(cudaStreamWaitEvent(s.stream, s.theirs, 0), "cudaStreamWaitEvent");
        tiny(s.scratch, s.stamps, s.stream);
        if (by == host_word)
            check(cudaStreamSynchronize(s.stream), "cudaStreamSynchronize");
        else
            check(cudaEventRecord(s.mine, s.stream), "cudaEventRecord");
        own.store(k, std::memory_order_release);
    }
    require(meets(b, other, hops), means_names[by]);
    check(cudaStreamSynchronize(s.stream), "cudaStreamSynchronize");
}
/// Enqueues all turns of this side. The stream itself waits for the other side's word before each turn, so
/// all turns can be enqueued before the first turn begins.
void enqueue_turns(side& s, u32 hops) {
    const auto wait = driver<decltype(&cuStreamWaitValue32)>("cuStreamWaitValue32_v2");
    const auto write = driver<decltype(&cuStreamWriteValue32)>("cuStreamWriteValue32_v2");
    const auto own = reinterpret_cast<CUdeviceptr>(s.words + s.number * distance);
    const auto other = reinterpret_cast<CUdeviceptr>(s.words + (1 - s.number) * distance);
    for (u32 k = 1; k <= hops; ++k) {
        const u32 before = s.number == 0 ? k - 1 : k;
        check(wait(s.stream, other, before, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue32");
        tiny(s.scratch, s.stamps, s.stream);
        check(write(s.stream, own, k, 0), "cuStreamWriteValue32");
    }
}
u32 count_of(const u32* at) {
    u32 n = 0;
    check(cudaMemcpy(&n, at, sizeof n, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return n;
}

/// Returns the 95th percentile of the one-way time in us, computed from the times of this side's kernels or,
/// with a single spinning kernel, from the times of its turns.
f64 p95_of(const side& s, u32 hops) {
    std::vector<u64> at(hops);
    check(cudaMemcpy(at.data(), s.stamps, hops * sizeof(u64), cudaMemcpyDeviceToHost), "cudaMemcpy");
    std::vector<f64> us;
    for (u32 k = 1; k < hops; ++k) us.push_back(static_cast<f64>(at[k] - at[k - 1]) / 2000);
    std::sort(us.begin(), us.end());
    return us.empty() ? 0 : us[us.size() * 95 / 100];
}

/// Takes part in the measurement of one mechanism, on either side; the first side also measures the time.
void measure_means(hop_board& b, side& s, means by, u32 hops, u32& meetings) {
    check(cudaMemset(s.scratch, 0, 2 * sizeof(u32)), "cudaMemset");
    if (s.number == 0) check(cudaMemset(s.words, 0, 2 * distance * sizeof(u32)), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    b.submitted[s.number] = 0;
    require(meet(b, meetings), means_names[by]);
    std::unique_ptr<gate> held;
    if (by == wait_value) {
        if (s.number == 0) held = std::make_unique<gate>(), held->hold(s.stream);
        enqueue_turns(s, hops);
        require(meet(b, meetings), means_names[by]);  // both sides have enqueued all turns
    }
    const u64 begin = now_ns();
    if (by == wait_value) {
        if (held) held->release();
        check(cudaStreamSynchronize(s.stream), "cudaStreamSynchronize");
    } else if (by == spin) {
        spin_turns(s.words + s.number * distance, s.words + (1 - s.number) * distance, s.number == 0, hops, 5,
                   s.scratch, s.stamps, s.stream);
        check(cudaStreamSynchronize(s.stream), "a kernel that spins");
    } else {
        take_turns(b, s, by, hops);
    }
    const f64 us = static_cast<f64>(now_ns() - begin) / 1000 / (2.0 * hops);
    b.wrong[by] += count_of(s.scratch) != hops;
    require(meet(b, meetings), means_names[by]);
    if (s.number == 0) b.us[by] = us, b.p95_us[by] = p95_of(s, hops), b.turns[by] = hops;
}
/// Returns the number of round trips to measure, which is smaller for a slow mechanism.
u32 hops_of(means by, bool slices, bool quick) {
    if (by == spin) return slices ? (quick ? 10 : 30) : 500;
    if (by == wait_value) return 100;  // the number of operations that a stream accepts without blocking
    return quick ? 100 : 300;
}
void warm_up(side& s) {
    check(cudaMalloc(&s.scratch, 256), "cudaMalloc");
    check(cudaMemset(s.scratch, 0, 256), "cudaMemset");
    check(cudaMalloc(&s.stamps, most_hops * sizeof(u64)), "cudaMalloc");
    tiny(s.scratch + 8, nullptr, s.stream);
    spin_turns(s.scratch + 16, s.scratch + 16, true, 0, 1, s.scratch + 8, s.stamps, s.stream);
    check(cudaStreamSynchronize(s.stream), "the first kernels");
}
void run_side(hop_board& b, side& s, bool slices, bool quick) {
    u32 meetings = 0;
    require(meet(b, meetings), "the beginning");
    for (const means by : {host_word, event_polled, event_waited, wait_value, spin})
        measure_means(b, s, by, hops_of(by, slices, quick), meetings);
}

}  // namespace

void process_side(hop_board& b, u32 number, int device, bool slices, bool quick) {
    side s;
    s.number = number;
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreateWithFlags(&s.mine, cudaEventDisableTiming | cudaEventInterprocess),
          "cudaEventCreate");
    check(cudaIpcGetEventHandle(&b.events[number], s.mine), "cudaIpcGetEventHandle");
    warm_up(s);
    if (number == 0) {
        check(cudaMalloc(&s.words, words_bytes), "cudaMalloc");
        check(cudaIpcGetMemHandle(&b.words, s.words), "cudaIpcGetMemHandle");
    }
    ++b.submitted[number];  // its handles are published
    require(meets(b, b.submitted[1 - number], 1), "the handles");
    check(cudaIpcOpenEventHandle(&s.theirs, b.events[1 - number]), "cudaIpcOpenEventHandle");
    void* words = s.words;
    if (number == 1)
        check(cudaIpcOpenMemHandle(&words, b.words, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
    s.words = static_cast<u32*>(words);
    run_side(b, s, slices, quick);
}
void thread_sides(hop_board& b, bool quick) {
    side both[2];
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaMalloc(&both[0].words, words_bytes), "cudaMalloc");
    for (u32 n = 0; n < 2; ++n) {
        both[n].number = n, both[n].words = both[0].words;
        check(cudaStreamCreateWithFlags(&both[n].stream, cudaStreamNonBlocking), "cudaStreamCreate");
        check(cudaEventCreateWithFlags(&both[n].mine, cudaEventDisableTiming), "cudaEventCreate");
        warm_up(both[n]);
    }
    both[0].theirs = both[1].mine, both[1].theirs = both[0].mine;
    std::thread second([&] {
        try {
            check(cudaSetDevice(0), "cudaSetDevice");
            run_side(b, both[1], false, quick);
        } catch (const error&) {
            b.failed = 1;
        }
    });
    try {
        run_side(b, both[0], false, quick);
    } catch (const error&) {
        b.failed = 1;
        second.join();
        throw;
    }
    second.join();
}

}  // namespace carousel::bench::gpu
