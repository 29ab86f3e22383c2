// The control block's guards: the ring's own steps of a frame through source, middle and sink, in a separate
// process for each measurement, with its pages closed and with the headers' seals verified again; the
// supervisor's checks of such a block; and the lines of the table.
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
#include "ring/check/block_check.hpp"
#include "ring/header_check.hpp"
#include "ring/own_pages.hpp"
#include "ring/parameter_box.hpp"
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

constexpr u32 parameter_bytes = 112;  ///< of a frame, as the demo has them (carousel.scene)

/// The work of a stage for the seals of a frame: seals of inputs are compared before the lease and before
/// SUBMITTED, seals of outputs are made.
u64 seals_of(const shm::control_block& c, ring::worker& w, const ring::job& j) {
    u64 all = 0;
    for (u32 check = 0; check < 2; ++check)
        for (u32 i = 0; i < j.inputs; ++i)
            all += ring::is_sealed(w.input(i).header(j.input[i].index), c.parameters.bytes) ? 1 : 0;
    for (u32 k = 0; k < w.outputs(); ++k)
        all ^= ring::header_sum(w.output(k).header(j.output[k].index), c.parameters.bytes);
    return all;
}

struct small_run {
    shm::private_block c = shm::make_private_block();
    std::vector<ring::worker> workers;
    ring::page_list pages;
    ring::known_run known;   ///< the values that its supervisor would know
    volatile u64 seals = 0;  ///< otherwise no check would be needed

    small_run() {
        ring::plan p;
        p.stages = {{"source", {}, true}, {"middle", {0}, true}, {"sink", {1}, false}};
        for (ring::stage_plan& s : p.stages) s.slot_bytes = 256;
        ring::initialise(*c, p);
        c->magic.store(shm::control_magic);
        ring::initialise_parameters(c->parameters, std::vector<std::byte>(parameter_bytes), 0);
        for (u32 seat = 0; seat < 3; ++seat) {
            const ring::incarnation_id incarnation = ring::appoint(*c, seat);
            (void)ring::revoke(*c, seat, 0);
            if (ring::claim(*c, incarnation) != ring::claim_result::ok || !ring::go_live(*c, incarnation))
                throw error(1, "no worker sits");
            workers.emplace_back(*c, incarnation.seat, incarnation.entry, incarnation.epoch);
            known.epochs.push_back(incarnation.epoch);
            const auto pid = ring::entry_word::of(ring::load(c->entry[incarnation.entry].identity)).pid;
            known.processes.push_back(
                {seat, incarnation.entry, incarnation.epoch, static_cast<u32>(pid), true});
            const ring::page_list own = ring::pages_of(*c, incarnation, 0);
            for (const shm::page_range& r : own.pages())
                pages.add(*c, reinterpret_cast<const std::byte*>(c.get()) + r.from, r.bytes);
        }
    }
    void frame(bool seals_again) {
        for (ring::worker& w : workers) {
            ring::job j;
            if (w.begin(j, 0) != ring::outcome::ok) throw error(1, "no frame begins");
            if (seals_again) seals = seals + seals_of(*c, w, j);
            if (!w.submit(j) || !w.commit(j) || !w.complete(j)) throw error(1, "a frame fails");
        }
    }
};

/// us of CPU time per frame through three stages' own steps of the ring, in a separate process.
f64 ring_steps_us(shm::block_guard how, bool seals_again, u64 frames) {
    int ends[2];
    if (::pipe(ends) != 0) throw error(1, "no pipe");
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            small_run run;
            if (how != shm::block_guard::off && shm::guard_block(*run.c, run.pages.pages(), how) != how)
                ::_exit(1);
            u64 began = 0;
            for (u64 n = 0; n < frames + frames / 4; ++n) {
                if (n == frames / 4) began = thread_cpu_ns();
                run.frame(seals_again);
            }
            const f64 us = static_cast<f64>(thread_cpu_ns() - began) / 1000 / static_cast<f64>(frames);
            ::_exit(::write(ends[1], &us, sizeof us) == sizeof us ? 0 : 1);
        } catch (const std::exception&) {
            ::_exit(1);
        }
    }
    ::close(ends[1]);
    f64 us = 0;
    const bool received = ::read(ends[0], &us, sizeof us) == sizeof us;
    ::close(ends[0]);
    int ended = 0;
    ::waitpid(child, &ended, 0);
    if (!received || ended != 0) throw error(1, "the process with a closed control block failed");
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

namespace {

/// us of CPU time of the supervisor's checks of a block of three stages per second: in each of its fifty
/// ticks static parts, known values and parity, in one all words.
f64 checks_us(small_run& run, const shm::control_block& made) {
    constexpr u32 ticks = 50;
    std::vector<ring::finding> found;
    const auto check = [&](std::vector<ring::finding> more) {
        found.insert(found.end(), more.begin(), more.end());
    };
    const u64 began = thread_cpu_ns();
    for (u32 tick = 0; tick < ticks; ++tick) {
        check(ring::check_parity(*run.c, made));
        check(ring::check_static(*run.c, made));
        check(ring::check_known(*run.c, made, run.known));
    }
    check(ring::check_parity(*run.c, made));
    check(ring::check_words(*run.c, made, run.known));
    const u64 took = thread_cpu_ns() - began;
    if (!found.empty()) throw error(1, "a look finds damage: " + found.front().text());
    return static_cast<f64>(took) / 1000;
}

void audit_rows(const options& o) {
    small_run run;
    const shm::private_block made = shm::make_private_block();
    shm::copy_words(*made, *run.c);
    for (u32 n = 0; n < 10; ++n) run.frame(false);
    std::vector<f64> us;
    for (u32 round = 0; round < o.pairs; ++round) us.push_back(checks_us(run, *made));
    const auto [low, high] = interval(us);
    fmt::print(
        "| audit | CPU time a second, us (of a core) | {} |  | {:.0f} | {:.3f} % | {:.3f} to {:.3f} |\n",
        us.size(), median(us), median(us) / 1e4, low / 1e4, high / 1e4);
}

}  // namespace

// Before the device: a process with a CUDA context must not fork.
void ring_rows(const options& o) {
    const shm::block_guard how =
        shm::has_protection_keys() ? shm::block_guard::keys : shm::block_guard::pages;
    struct arm {
        shm::block_guard guard = shm::block_guard::off;
        bool seals_again = false;
        std::vector<f64> us = {};
    };
    std::array<arm, 4> arms{arm{}, arm{}, arm{how}, arm{shm::block_guard::off, true}};
    std::array<arm*, 4> order{};
    std::transform(arms.begin(), arms.end(), order.begin(), [](arm& a) { return &a; });
    std::minstd_rand dice(16);
    for (u32 round = 0; round < o.pairs; ++round) {
        std::shuffle(order.begin(), order.end(), dice);
        for (arm* a : order) a->us.push_back(ring_steps_us(a->guard, a->seals_again, 20'000));
    }
    const auto& [without, again, with, sealed] = arms;
    const char* const name =
        how == shm::block_guard::keys ? "control block closed by keys" : "control block, page rights";
    fmt::print("| none, once more | ring's steps, CPU time | {} | {:.3f} | {:.3f} | |\n", again.us.size(),
               median(without.us), median(again.us));
    print_ratio(name, "ring's steps, CPU time", without.us, with.us);
    print_ratio("seals of headers", "ring's steps, CPU time", without.us, sealed.us);
    print_share("none, once more", o, without.us, again.us);
    print_share(name, o, without.us, with.us);
    print_share("seals of headers", o, without.us, sealed.us);
    audit_rows(o);
    fmt::print("\n");
    std::fflush(stdout);
}

}  // namespace carousel::guard_cost
