// Measures the hop from a kernel of one side to a kernel of the other side, for each mechanism. The two sides
// are threads of one process with a stream each, or two processes (in time slices, under MPS, or on two
// GPUs). Also measures the floors: the time that a single thread needs for the same operations when there is
// no other side.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "bench/ipc/cuda/gpu_hop_sides.hpp"
#include "bench/ipc/cuda/gpu_parts.hpp"
#include "bench/ipc/cuda/kernels.hpp"
#include "bench/ipc/mps_daemon.hpp"
#include "bench/ipc/run.hpp"
#include "bench/statistics.hpp"
#include "core/clock.hpp"

namespace carousel::bench {
namespace {

using namespace gpu;

struct place {
    const char* name;
    bool processes = true, slices = false;
    int second_device = 0;
    const mps_folder* folder = nullptr;
};
/// Starts a child process for a place. A child that fails stores the reason in `why`.
template <std::size_t N>
pid_t start_in(const mps_folder* folder, char (&why)[N], const std::function<void()>& work) {
    return start_child([&] {
        if (folder != nullptr) folder->enter();
        // with lazy loading, a kernel would be loaded at its launch, and the loading would wait for the held
        // streams
        ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
        try {
            work();
            return 0;
        } catch (const error& e) {
            if (why[0] == 0) std::string(e.what()).copy(why, N - 1);
            return 1;
        }
    });
}

/// Returns "" on success, otherwise the reason.
std::string run_round(const place& p, bool quick, hop_board& b) {
    std::vector<pid_t> pids;
    if (p.processes)
        for (u32 n = 0; n < 2; ++n)
            pids.push_back(start_in(p.folder, b.why, [&, n] {
                try {
                    process_side(b, n, n == 0 ? 0 : p.second_device, p.slices, quick);
                } catch (const error&) {
                    b.failed = 1;  // makes the other side stop waiting
                    throw;
                }
            }));
    else
        pids.push_back(start_in(p.folder, b.why, [&] { thread_sides(b, quick); }));
    bool ended = true;
    for (const pid_t pid : pids) ended = end_child(pid) && ended;
    return ended           ? ""
           : b.why[0] != 0 ? b.why
                           : "one of the two sides of the measured transfer did not finish";
}

f64 floor_of(means by, const gpu_hop_floors& f) {
    switch (by) {
        case host_word:
        case event_polled:
            return f.synced_launch;
        case event_waited:
        case wait_value:
            return f.next_kernel;
        default:
            return f.two_blocks;
    }
}

void measure_place(const place& p, const ipc_bench_options& o, gpu_result& r) {
    std::vector<f64> us[all_means], p95_us[all_means];
    bool verified[all_means];
    u32 turns[all_means] = {};
    std::fill(std::begin(verified), std::end(verified), true);
    for (u32 round = 0; round < o.rounds; ++round) {
        const shared_with_children<hop_board> b;
        const std::string why = run_round(p, o.quick, *b);
        if (!why.empty()) {
            r.missing[std::string("hops, ") + p.name] = why;
            return;
        }
        for (u32 m = 0; m < all_means; ++m) {
            us[m].push_back(b->us[m]), p95_us[m].push_back(b->p95_us[m]);
            verified[m] = verified[m] && b->wrong[m] == 0, turns[m] = b->turns[m];
        }
    }
    for (u32 m = 0; m < all_means; ++m) {
        gpu_hop_row row;
        row.means = means_names[m], row.where = p.name, row.round_trips = turns[m],
        row.verified = verified[m];
        row.us = median_of(us[m]), row.p95_us = median_of(p95_us[m]), row.ratio = 1;
        row.floor_us = floor_of(static_cast<means>(m), r.hop_floors);
        for (const gpu_hop_row& one : r.hops)
            if (one.means == row.means && one.where == "one process") row.ratio = row.us / one.us;
        r.hops.push_back(row);
    }
}

/// Measures the floors on one thread of a child process. `to` is in memory that the parent also maps, so that
/// the parent can read the results.
void find_floors(gpu_hop_floors& to, u32 rounds) {
    constexpr u32 kernels = 500, chained = 200,
                  apart = 1024;  // chained: the number of operations that a held stream accepts
    check(cudaSetDevice(0), "cudaSetDevice");
    cudaStream_t s = nullptr;
    u32* words = nullptr;
    u64* stamps = nullptr;
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaMalloc(&words, 4 * apart * sizeof(u32)), "cudaMalloc");
    check(cudaMalloc(&stamps, chained * sizeof(u64)), "cudaMalloc");
    u32* const count = words + 3 * apart;
    std::vector<f64> synced, next, blocks;
    gate held;
    for (u32 round = 0; round <= rounds; ++round) {  // the first round is a warm-up
        check(cudaMemset(words, 0, 4 * apart * sizeof(u32)), "cudaMemset");
        std::vector<f64> each;
        for (u32 k = 0; k < kernels; ++k) {
            const u64 begin = now_ns();
            tiny(count, nullptr, s);
            check(cudaStreamSynchronize(s), "cudaStreamSynchronize");
            each.push_back(static_cast<f64>(now_ns() - begin) / 1000);
        }
        check(cudaMemset(count, 0, sizeof(u32)), "cudaMemset");
        check(cudaDeviceSynchronize(), "cudaMemset");
        if (round > 0) held.hold(s);
        for (u32 k = 0; k < chained; ++k) tiny(count, stamps, s);
        held.release();
        check(cudaStreamSynchronize(s), "cudaStreamSynchronize");
        u64 first = 0, last = 0;
        check(cudaMemcpy(&first, stamps, sizeof first, cudaMemcpyDeviceToHost), "cudaMemcpy");
        check(cudaMemcpy(&last, stamps + chained - 1, sizeof last, cudaMemcpyDeviceToHost), "cudaMemcpy");
        const u64 begin = now_ns();
        blocks_take_turns(words, apart, kernels * 4, count, s);
        check(cudaStreamSynchronize(s), "cudaStreamSynchronize");
        const f64 us = static_cast<f64>(now_ns() - begin) / 1000 / (2.0 * kernels * 4);
        u32 turns = 0;
        check(cudaMemcpy(&turns, count, sizeof turns, cudaMemcpyDeviceToHost), "cudaMemcpy");
        if (turns != kernels * 4)
            throw device_error("two blocks of a kernel did not finish their turns within the time limit");
        if (round == 0) continue;
        synced.push_back(median_of(each)), blocks.push_back(us);
        next.push_back(static_cast<f64>(last - first) / 1000 / (chained - 1));
    }
    to = {median_of(synced), median_of(next), median_of(blocks)};
}
void measure_floors(const mps_folder& none, const ipc_bench_options& o, gpu_result& r) {
    struct shared_result {
        gpu_hop_floors floors;
        char why[200];
    };
    const shared_with_children<shared_result> t;
    if (end_child(start_in(&none, t->why, [&] { find_floors(t->floors, o.rounds); })))
        r.hop_floors = t->floors;
    else
        r.missing["fastest possible times of the transfers"] =
            t->why[0] != 0 ? t->why : "a process of the benchmark did not finish";
}

}  // namespace

void measure_gpu_hops(const ipc_bench_options& o, ipc_bench_result& r,
                      const progress_function& report_progress) {
    const gpu_info before = query_gpus();
    if (before.devices == 0) {
        r.gpu.missing["gpu"] = before.why;
        return;
    }
    record_gpu(before, true, r.gpu);
    // `none` is a folder without an MPS daemon, so processes that use it do not join a daemon of this machine
    const mps_folder none, folder;
    report_progress("GPU hops, floors");
    measure_floors(none, o, r.gpu);
    report_progress("GPU hops, one process");
    measure_place({"one process", false, false, 0, &none}, o, r.gpu);
    report_progress("GPU hops, time slices");
    measure_place({"time slices", true, true, 0, &none}, o, r.gpu);
    {
        report_progress("GPU hops, MPS");
        const mps_daemon daemon(folder);
        if (daemon.runs())
            measure_place({"MPS", true, false, 0, &folder}, o, r.gpu);
        else
            r.gpu.missing["hops, MPS"] = "no MPS daemon could be started here (nvidia-cuda-mps-control)";
    }
    report_progress("GPU hops, two GPUs");
    if (before.devices > 1 && before.peers)
        measure_place({"two GPUs", true, false, 1, &none}, o, r.gpu);
    else
        r.gpu.missing["hops, two GPUs"] =
            before.devices > 1 ? "the first two GPUs have no peer access" : "only one GPU here";
    record_gpu(query_gpus(), false, r.gpu);
}

}  // namespace carousel::bench
