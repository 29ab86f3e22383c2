// From a kernel of one side to a kernel of the other, by each means. The two sides are threads of one process
// with a stream each, or processes: in time slices, under MPS, on two GPUs. What they do is the same code.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "bench/ipc/cuda/gpu_info.hpp"
#include "bench/ipc/cuda/gpu_parts.hpp"
#include "bench/ipc/cuda/kernels.hpp"
#include "bench/ipc/gpu.hpp"
#include "bench/ipc/mps_daemon.hpp"
#include "bench/statistics.hpp"
#include "core/clock.hpp"

namespace carousel::bench {
namespace {

using namespace gpu;

constexpr u64 patience_ns = 10'000'000'000;
constexpr u32 words_bytes = 2U << 20U, far = 1024;  // the sides' words, apart from each other
enum means : u32 { host_word, event_polled, event_waited, wait_value, spin, all_means };
constexpr const char* means_names[] = {"word on the CPU, behind a sync", "IPC event, polled",
                                       "IPC event, stream waits", "value, stream waits", "a kernel spins"};

/// What both sides see, whatever they are.
struct board {
    std::atomic<u32> ready, failed;
    std::atomic<u32> submitted[2];  // round trips whose kernel is enqueued (host_word: done)
    cudaIpcEventHandle_t events[2];
    cudaIpcMemHandle_t words;
    f64 us[all_means];
    u32 turns[all_means];
    std::atomic<u32> wrong[all_means];  // sides whose kernels didn't run as often as they should
    char why[200];
};

struct side {
    u32 number = 0;
    cudaStream_t stream = nullptr;
    cudaEvent_t mine = nullptr, theirs = nullptr;
    u32 *words = nullptr, *scratch = nullptr;  // scratch: counts its kernels, and its turns of spinning
};

/// False: the other side has failed, or is late.
bool meets(board& b, std::atomic<u32>& word, u32 value) {
    const u64 end = now_ns() + patience_ns;
    for (u32 k = 0; word.load(std::memory_order_acquire) < value; ++k) {
        if (b.failed.load() != 0 || (k % 1024 == 1023 && now_ns() > end)) return false;
        if (k % 1024 == 1023) ::sched_yield();
    }
    return true;
}
bool meet(board& b, u32& meetings) {
    ++b.ready;
    return meets(b, b.ready, 2 * ++meetings);
}
void require(bool met, const char* what) {
    if (!met) throw shm_error(std::string(what) + ": the other side of the hop didn't come");
}
/// Its part of so many round trips; the first side begins. One kernel a turn.
void take_turns(board& b, side& s, means by, u32 hops) {
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
        tiny(s.scratch, s.stream);
        if (by == host_word)
            check(cudaStreamSynchronize(s.stream), "cudaStreamSynchronize");
        else
            check(cudaEventRecord(s.mine, s.stream), "cudaEventRecord");
        own.store(k, std::memory_order_release);
    }
    require(meets(b, other, hops), means_names[by]);
    check(cudaStreamSynchronize(s.stream), "cudaStreamSynchronize");
}
/// All turns are enqueued before the first may begin: the other side's word is waited for by the stream.
void enqueue_turns(side& s, u32 hops) {
    const auto wait = driver<decltype(&cuStreamWaitValue32)>("cuStreamWaitValue32_v2");
    const auto write = driver<decltype(&cuStreamWriteValue32)>("cuStreamWriteValue32_v2");
    const auto own = reinterpret_cast<CUdeviceptr>(s.words + s.number * far);
    const auto other = reinterpret_cast<CUdeviceptr>(s.words + (1 - s.number) * far);
    for (u32 k = 1; k <= hops; ++k) {
        const u32 before = s.number == 0 ? k - 1 : k;
        check(wait(s.stream, other, before, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue32");
        tiny(s.scratch, s.stream);
        check(write(s.stream, own, k, 0), "cuStreamWriteValue32");
    }
}
u32 count_of(const u32* at) {
    u32 n = 0;
    check(cudaMemcpy(&n, at, sizeof n, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return n;
}

/// One means, both sides; the first one takes the time.
void measure_means(board& b, side& s, means by, u32 hops, u32& meetings) {
    check(cudaMemset(s.scratch, 0, 2 * sizeof(u32)), "cudaMemset");
    if (s.number == 0) check(cudaMemset(s.words, 0, 2 * far * sizeof(u32)), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    b.submitted[s.number] = 0;
    require(meet(b, meetings), means_names[by]);
    std::unique_ptr<gate> held;
    if (by == wait_value) {
        if (s.number == 0) held = std::make_unique<gate>(), held->hold(s.stream);
        enqueue_turns(s, hops);
        require(meet(b, meetings), means_names[by]);  // all is enqueued, here and there
    }
    const u64 begin = now_ns();
    if (by == wait_value) {
        if (held) held->release();
        check(cudaStreamSynchronize(s.stream), "cudaStreamSynchronize");
    } else if (by == spin) {
        spin_turns(s.words + s.number * far, s.words + (1 - s.number) * far, s.number == 0, hops, 5,
                   s.scratch, s.stream);
        check(cudaStreamSynchronize(s.stream), "a kernel that spins");
    } else {
        take_turns(b, s, by, hops);
    }
    const f64 us = static_cast<f64>(now_ns() - begin) / 1000 / (2.0 * hops);
    b.wrong[by] += count_of(s.scratch) != hops;
    require(meet(b, meetings), means_names[by]);
    if (s.number == 0) b.us[by] = us, b.turns[by] = hops;
}
/// Fewer where a hop takes long.
u32 hops_of(means by, bool slices, bool quick) {
    if (by == spin) return slices ? (quick ? 10 : 30) : 500;
    if (by == wait_value) return 100;  // what a stream takes without a pause
    return quick ? 100 : 300;
}
void warm_up(side& s) {
    check(cudaMalloc(&s.scratch, 256), "cudaMalloc");
    check(cudaMemset(s.scratch, 0, 256), "cudaMemset");
    tiny(s.scratch + 8, s.stream);
    spin_turns(s.scratch + 16, s.scratch + 16, true, 0, 1, s.scratch + 8, s.stream);
    check(cudaStreamSynchronize(s.stream), "the first kernels");
}
void run_side(board& b, side& s, bool slices, bool quick) {
    u32 meetings = 0;
    require(meet(b, meetings), "the beginning");
    for (const means by : {host_word, event_polled, event_waited, wait_value, spin})
        measure_means(b, s, by, hops_of(by, slices, quick), meetings);
}

/// A process of its own. The first side owns the words.
void process_side(board& b, u32 number, int device, bool slices, bool quick) {
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
    ++b.submitted[number];  // its handles are there
    require(meets(b, b.submitted[1 - number], 1), "the handles");
    check(cudaIpcOpenEventHandle(&s.theirs, b.events[1 - number]), "cudaIpcOpenEventHandle");
    void* words = s.words;
    if (number == 1)
        check(cudaIpcOpenMemHandle(&words, b.words, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
    s.words = static_cast<u32*>(words);
    run_side(b, s, slices, quick);
}
/// Both sides as threads: the peer without a crossing.
void thread_sides(board& b, bool quick) {
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

struct place {
    const char* name;
    bool processes = true, slices = false;
    int second_device = 0;
    const mps_folder* folder = nullptr;
};
/// Of one round; the rows' us are collected by the caller. "": it went well.
std::string run_round(const place& p, bool quick, f64 (&us)[all_means], bool (&well)[all_means],
                      u32 (&turns)[all_means]) {
    const shared_with_children<board> b;
    const auto child = [&](const std::function<void()>& work) {
        return start_child([&] {
            if (p.folder != nullptr) p.folder->enter();
            ::setenv("CUDA_MODULE_LOADING", "EAGER",
                     0);  // what is loaded later waits for streams that are held
            try {
                work();
                return 0;
            } catch (const error& e) {
                if (b->failed.exchange(1) == 0) std::string(e.what()).copy(b->why, sizeof b->why - 1);
                return 1;
            }
        });
    };
    std::vector<pid_t> pids;
    if (p.processes)
        for (u32 n = 0; n < 2; ++n)
            pids.push_back(
                child([&, n] { process_side(*b, n, n == 0 ? 0 : p.second_device, p.slices, quick); }));
    else
        pids.push_back(child([&] { thread_sides(*b, quick); }));
    bool ended = true;
    for (const pid_t pid : pids) ended = end_child(pid) && ended;
    for (u32 m = 0; m < all_means; ++m) us[m] = b->us[m], well[m] = b->wrong[m] == 0, turns[m] = b->turns[m];
    return ended ? "" : b->why[0] != 0 ? b->why : "a side of the hop came to no end";
}
void measure_place(const place& p, const ipc_bench_options& o, gpu_result& r) {
    std::vector<f64> all[all_means];
    bool verified[all_means];
    u32 turns[all_means] = {};
    std::fill(std::begin(verified), std::end(verified), true);
    for (u32 round = 0; round < o.rounds; ++round) {
        f64 us[all_means];
        bool well[all_means];
        const std::string why = run_round(p, o.quick, us, well, turns);
        if (!why.empty()) {
            r.missing[std::string("hops, ") + p.name] = why;
            return;
        }
        for (u32 m = 0; m < all_means; ++m) all[m].push_back(us[m]), verified[m] = verified[m] && well[m];
    }
    for (u32 m = 0; m < all_means; ++m) {
        gpu_hop_row row{means_names[m], p.name, median_of(all[m]), 1, turns[m], verified[m]};
        for (const gpu_hop_row& one : r.hops)
            if (one.means == row.means && one.where == "one process") row.ratio = row.us / one.us;
        r.hops.push_back(row);
    }
}

}  // namespace

void measure_gpu_hops(const ipc_bench_options& o, ipc_bench_result& r, const say_progress& say) {
    const gpu_info before = look_at_gpus();
    if (before.devices == 0) {
        r.gpu.missing["gpu"] = before.why;
        return;
    }
    tell_gpu(before, true, r.gpu);
    const mps_folder none, folder;  // in `none` there is no daemon, whatever this machine has elsewhere
    say("GPU hops, one process");
    measure_place({"one process", false, false, 0, &none}, o, r.gpu);
    say("GPU hops, time slices");
    measure_place({"time slices", true, true, 0, &none}, o, r.gpu);
    {
        say("GPU hops, MPS");
        const mps_daemon daemon(folder);
        if (daemon.runs())
            measure_place({"MPS", true, false, 0, &folder}, o, r.gpu);
        else
            r.gpu.missing["hops, MPS"] = "no MPS daemon could be started here (nvidia-cuda-mps-control)";
    }
    say("GPU hops, two GPUs");
    if (before.devices > 1 && before.peers)
        measure_place({"two GPUs", true, false, 1, &none}, o, r.gpu);
    else
        r.gpu.missing["hops, two GPUs"] =
            before.devices > 1 ? "the first two GPUs are no peers" : "only one GPU here";
    tell_gpu(look_at_gpus(), false, r.gpu);
}

}  // namespace carousel::bench
