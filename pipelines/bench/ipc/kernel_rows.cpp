#include "bench/ipc/kernel_rows.hpp"

#include <algorithm>

#include "bench/ipc/cuda/kernel_primitives.hpp"
#include "bench/statistics.hpp"
#include "os/held_space.hpp"

namespace carousel::bench {
namespace {

struct kernel_row {
    const char *primitive, *by;
    bool processes;  ///< else one process with so many blocks
    std::function<worker_loop(u32 number)> make;
};

primitive_row measure(const kernel_row& k, u32 number, const ipc_bench_options& o, kernel_sums& sums) {
    primitive_row row{k.primitive, k.by, k.processes, number, 0, 0, 0, true};
    std::vector<f64> rates, ns;
    for (u32 round = 0; round < o.rounds; ++round) {
        sums.pushed = 0, sums.popped = 0, sums.wrong = 0;
        const round_result r =
            run_round(true, k.processes ? number : 1, 2 * o.round_ms, [&](u32) { return k.make(number); });
        row.verified =
            row.verified && r.well && r.operations > 0 && sums.wrong == 0 && sums.pushed == sums.popped;
        rates.push_back(static_cast<f64>(r.operations) / r.seconds);
        ns.push_back(r.seconds * 1e9 * number / static_cast<f64>(std::max<u64>(1, r.operations)));
    }
    row.operations_s = median_of(rates), row.ns = median_of(ns);
    std::sort(ns.begin(), ns.end());
    row.p95_ns = ns[std::min(ns.size() - 1, ns.size() * 95 / 100)];
    return row;
}

}  // namespace

void measure_kernel_rows(const ipc_bench_options& o, const std::string& programs, ipc_bench_result& r,
                         const say_progress& say) {
    if (!has_gpu()) return;
    const supervisor::held_space held(programs, "bench-gpu", "cuda:0");
    const std::string& space = held.name();
    const shared_with_children<kernel_sums> sums;
    kernel_sums& s = *sums;
    const kernel_row rows[] = {
        {"word in kernels, fetch_add", "Carousel", true, [&](u32) { return word_in_kernels(space); }},
        {"word in kernels, fetch_add", "cuda::atomic", false, [](u32 n) { return peer_word(n); }},
        {"queue in kernels", "Carousel", true, [&](u32) { return queue_in_kernels(space, s); }},
        {"queue in kernels", "a ring of cuda::atomic", false, [&](u32 n) { return peer_queue(n, s); }},
        {"semaphore in streams", "Carousel", true, [&](u32) { return semaphore_in_streams(space); }},
        {"semaphore in kernels", "cuda::counting_semaphore", false, [](u32 n) { return peer_semaphore(n); }}};
    for (const kernel_row& k : rows)
        for (const u32 number : o.processes) {
            say(std::string("primitives: ") + k.primitive + ", " + k.by + ", " + std::to_string(number));
            r.primitives.push_back(measure(k, number, o, s));
        }
}

}  // namespace carousel::bench
