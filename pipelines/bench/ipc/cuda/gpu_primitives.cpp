// Measures the primitives in kernels and streams of several processes, and their counterparts within one
// process. Plans the rows of the table and runs the rounds in each place (time slices, MPS, one process).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "bench/ipc/cuda/gpu_parts.hpp"
#include "bench/ipc/cuda/kernels.hpp"
#include "bench/ipc/mps_daemon.hpp"
#include "bench/ipc/run.hpp"
#include "bench/ipc/workers.hpp"
#include "bench/statistics.hpp"
#include "core/clock.hpp"
#include "spaces/spaces.hpp"

namespace carousel::bench {
namespace {

constexpr u32 quick_s = 45, whole_s = 150;
constexpr u32 shortest_round_ms = 60;  // long enough for each of 16 processes to get a time slice

struct table {
    const ipc_bench_options& o;
    gpu_result& r;
    const progress_function& report_progress;
    std::vector<u32> numbers;
    u64 until_ns;
    [[nodiscard]] bool is_late() const { return now_ns() > until_ns; }
};

/// Returns false if no further row can be measured with this crew.
bool measure(const table& t, crew& c, u32 what, u32 number, const char* where) {
    const kernel_contender& k = kernel_contenders[what];
    gpu_primitive_row row{k.primitive, k.by, k.processes ? where : "one process", number, 0, 0, 0, true};
    std::vector<f64> rates, ns;
    for (u32 round = 0; round < t.o.rounds; ++round) {
        const auto found =
            c.round(what, number, k.processes ? number : 1, std::max(shortest_round_ms, t.o.round_ms));
        if (!found) {
            t.r.missing[fmt::format("{} in kernels, {}, {} processes, {}, and the rows after this one",
                                    k.primitive, k.by, number, row.where)] = c.why();
            return false;
        }
        const auto n = static_cast<f64>(std::max<u64>(1, found->operations));
        rates.push_back(static_cast<f64>(found->operations) / found->seconds);
        ns.push_back(static_cast<f64>(found->timed_ns) / n);
        row.verified = row.verified && found->right && found->operations > 0;
    }
    row.operations_s = median_of(rates), row.ns = median_of(ns);
    std::sort(ns.begin(), ns.end());
    row.p95_ns = ns[std::min(ns.size() - 1, ns.size() * 95 / 100)];
    t.r.primitives.push_back(row);
    return true;
}

/// `with_peers`: also measures the counterparts within one process.
void measure_place(const table& t, const std::string& space, const char* where, const mps_folder& folder,
                   bool with_peers) {
    const u64 now = now_ns();
    const auto time_limit_s = static_cast<u32>((std::max(t.until_ns, now) - now) / ns_per_s) + 20;
    t.report_progress(
        fmt::format("primitives in kernels, {}: starting {} processes", where, t.numbers.back()));
    crew c(t.numbers.back(), time_limit_s, [&](u32 worker) {
        folder.enter();
        // with lazy loading, a kernel would be loaded at its launch, and the loading would wait for streams
        // that themselves wait
        ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
        return make_kernel_worker(space, worker);
    });
    if (!c.ready()) {
        t.r.missing[fmt::format("primitives in kernels, {}", where)] = c.why();
        return;
    }
    for (u32 what = 0; what < std::size(kernel_contenders); ++what) {
        const kernel_contender& k = kernel_contenders[what];
        if (!k.processes && !with_peers) continue;
        t.report_progress(fmt::format("primitives in kernels, {}: {}, {}",
                                      k.processes ? where : "one process", k.primitive, k.by));
        for (const u32 number : t.numbers) {
            if (t.is_late()) {
                t.r.missing[fmt::format("primitives in kernels, {}: {}, {}, and the rows after this one",
                                        where, k.primitive, k.by)] =
                    "the time limit of the table was reached";
                return;
            }
            if (!measure(t, c, what, number, where)) return;
        }
    }
}

}  // namespace

void measure_gpu_primitives(const ipc_bench_options& o, const std::string& programs, ipc_bench_result& r,
                            const progress_function& report_progress) {
    const gpu::gpu_info before = gpu::query_gpus();
    if (before.devices == 0) {
        r.gpu.missing["gpu"] = before.why;
        return;
    }
    gpu::record_gpu(before, true, r.gpu);
    table t{o, r.gpu, report_progress, {}, now_ns() + (o.quick ? quick_s : whole_s) * ns_per_s};
    for (const u32 number : o.processes)
        if (number <= most_kernel_workers)
            t.numbers.push_back(number);
        else
            r.gpu.missing[fmt::format("primitives in kernels of {} processes", number)] = fmt::format(
                "at most {} processes can have a context on a GPU at a time", most_kernel_workers);
    if (t.numbers.empty()) return;
    try {
        // no MPS daemon runs in `none`, even if other MPS daemons run on this machine
        const mps_folder none, folder;
        const supervisor::held_space held(programs, "bench-gpu", "cuda:0");
        measure_place(t, held.name(), "time slices", none, true);
        const mps_daemon daemon(folder);
        if (daemon.runs())
            measure_place(t, held.name(), "MPS", folder, false);
        else
            r.gpu.missing["primitives in kernels, MPS"] =
                "no MPS daemon could be started here (nvidia-cuda-mps-control)";
    } catch (const config_error& e) {
        r.gpu.missing["primitives in kernels"] = e.what();
    }
    gpu::record_gpu(gpu::query_gpus(), false, r.gpu);
}

}  // namespace carousel::bench
