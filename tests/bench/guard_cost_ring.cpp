// The control block's guard: the ring's own steps of a frame through source, middle and sink, in a process of
// its own for each measurement; and the lines of the table.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <random>
#include <utility>

#include "core/errors.hpp"
#include "ring/own_pages.hpp"
#include "ring/participants.hpp"
#include "ring/recovery.hpp"
#include "ring/topology.hpp"
#include "ring/worker.hpp"
#include "shm/block_guard.hpp"
#include "shm/segment.hpp"
#include "tests/bench/guard_cost.hpp"

namespace carousel::guard_cost {
namespace {

/// The ranks that hold the median with 95 %, both of them in it.
std::pair<f64, f64> interval(std::vector<f64> v) {
    std::sort(v.begin(), v.end());
    const auto n = static_cast<f64>(v.size());
    f64 below = std::pow(0.5, n), one = below;
    std::size_t k = 0;  // P(at most k of n are below the median) <= 2.5 %
    while (k + 1 < v.size() / 2) {
        one *= (n - static_cast<f64>(k)) / (static_cast<f64>(k) + 1);
        if (below + one > 0.025) break;
        below += one, ++k;
    }
    return {v[k], v[v.size() - 1 - k]};
}

/// us of CPU time a frame through three stages' own steps of the ring, in a process of its own.
f64 ring_steps_us(shm::block_guard how, u64 frames) {
    int ends[2];
    if (::pipe(ends) != 0) throw error(1, "no pipe");
    const pid_t child = ::fork();
    if (child == 0) {
        shm::private_block c = shm::make_private_block();
        ring::plan p;
        p.stages = {{"source", {}, true}, {"middle", {0}, true}, {"sink", {1}, false}};
        for (ring::stage_plan& s : p.stages) s.slot_bytes = 256;
        ring::initialise(*c, p);
        std::vector<ring::worker> workers;
        ring::page_list all;
        for (u32 seat = 0; seat < 3; ++seat) {
            const ring::incarnation_id who = ring::appoint(*c, seat);
            (void)ring::revoke(*c, seat, 0);
            if (ring::claim(*c, who) != ring::claim_result::ok || !ring::go_live(*c, who)) ::_exit(1);
            workers.emplace_back(*c, who.seat, who.entry, who.epoch);
            const ring::page_list own = ring::pages_of(*c, who, 0);
            for (const shm::page_range& r : own.pages())
                all.add(*c, reinterpret_cast<const std::byte*>(c.get()) + r.from, r.bytes);
        }
        if (how != shm::block_guard::off && shm::guard_block(*c, all.pages(), how) != how) ::_exit(1);
        u64 began = 0;
        for (u64 n = 0; n < frames + frames / 4; ++n) {
            if (n == frames / 4) began = thread_cpu_ns();
            for (ring::worker& w : workers) {
                ring::job j;
                if (w.begin(j, 0) != ring::outcome::ok || !w.submit(j) || !w.commit(j) || !w.complete(j))
                    ::_exit(1);
            }
        }
        const f64 us = static_cast<f64>(thread_cpu_ns() - began) / 1000 / static_cast<f64>(frames);
        ::_exit(::write(ends[1], &us, sizeof us) == sizeof us ? 0 : 1);
    }
    ::close(ends[1]);
    f64 us = 0;
    const bool told = ::read(ends[0], &us, sizeof us) == sizeof us;
    ::close(ends[0]);
    int ended = 0;
    ::waitpid(child, &ended, 0);
    if (!told || ended != 0) throw error(1, "the process with a closed control block failed");
    return us;
}

}  // namespace

u64 thread_cpu_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<u64>(t.tv_sec) * 1'000'000'000 + static_cast<u64>(t.tv_nsec);
}

f64 median(std::vector<f64> v) {
    std::sort(v.begin(), v.end());
    const std::size_t n = v.size();
    return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void print_ratio(const char* guard, const char* what, const std::vector<f64>& without,
                 const std::vector<f64>& with) {
    std::vector<f64> ratios;
    for (std::size_t k = 0; k < with.size(); ++k) ratios.push_back((with[k] / without[k] - 1) * 100);
    const auto [low, high] = interval(ratios);
    fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:+.2f} % | {:+.2f} to {:+.2f} |\n", guard, what,
               with.size(), median(without), median(with), median(ratios), low, high);
}

void print_share(const char* guard, const options& o, const std::vector<f64>& without,
                 const std::vector<f64>& with) {
    if (o.cpu_us == 0) return;
    std::vector<f64> shares;
    for (std::size_t k = 0; k < with.size(); ++k) shares.push_back((with[k] - without[k]) / o.cpu_us * 100);
    const auto [low, high] = interval(shares);
    fmt::print("| {} | CPU time, of a run's {:.0f} us | {} |  |  | {:+.2f} % | {:+.2f} to {:+.2f} |\n", guard,
               o.cpu_us, with.size(), median(shares), low, high);
}

// In front of the device: a process with a CUDA context is not to be forked.
void ring_rows(const options& o) {
    const shm::block_guard how =
        shm::has_protection_keys() ? shm::block_guard::keys : shm::block_guard::pages;
    std::vector<f64> without, again, with;
    std::minstd_rand dice(16);
    for (u32 round = 0; round < o.pairs; ++round) {
        std::array<std::pair<std::vector<f64>*, shm::block_guard>, 3> order{
            {{&without, shm::block_guard::off}, {&again, shm::block_guard::off}, {&with, how}}};
        std::shuffle(order.begin(), order.end(), dice);
        for (const auto& [into, guard] : order) into->push_back(ring_steps_us(guard, 20'000));
    }
    const char* const name =
        how == shm::block_guard::keys ? "control block closed by keys" : "control block, page rights";
    fmt::print("| none, once more | ring's steps, CPU time | {} | {:.3f} | {:.3f} | |\n", again.size(),
               median(without), median(again));
    print_ratio(name, "ring's steps, CPU time", without, with);
    print_share("none, once more", o, without, again);
    print_share(name, o, without, with);
    fmt::print("\n");
    std::fflush(stdout);
}

}  // namespace carousel::guard_cost
