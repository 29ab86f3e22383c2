// Whole runs on a simulated machine, from one seed each (simulated_run.hpp).
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "simulated_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

/// The run of a seed; CAROUSEL_TEST_FAULTS: bit k set if faults of kind k may happen (simulated_fault).
simulated_run_result run_of(u64 seed, bool takes_over = false) {
    simulated_run_options o{.seed = seed, .takes_over = takes_over};
    o.faults = static_cast<u32>(from_environment("CAROUSEL_TEST_FAULTS", o.faults));
    return simulate_run(o);
}

/// Seeds from CAROUSEL_TEST_SEED on; a failure prints its seed and the end of its trace.
void check_seeds(u64 first, u64 count, bool takes_over = false) {
    constexpr u32 most_failures = 3;  // a run that does not end takes seconds
    simulated_run_result sum;
    u32 failures = 0;
    for (u64 seed = first; seed < first + count && failures < most_failures; ++seed) {
        const simulated_run_result r = run_of(seed, takes_over);
        if (!r.violations.empty()) {
            ++failures;
            FAIL_CHECK("seed " << seed << ": " << r.text(from_environment("CAROUSEL_TEST_LINES", 40)));
        }
        sum.simulated_ns += r.simulated_ns;
        sum.commits += r.commits;
        sum.faults += r.faults;
        sum.processes += r.processes;
        sum.helped += r.helped;
        sum.standbys += r.standbys;
        sum.started_over += r.started_over;
        sum.tombstones += r.tombstones;
        sum.disk_waits += r.disk_waits;
        sum.rebuilds += r.rebuilds;
        sum.programs += r.programs;
        sum.returns += r.returns;
        sum.links += r.links;
        sum.takeovers += r.takeovers;
        sum.refused += r.refused;
        sum.lost_runs += r.lost_runs;
        for (u8 k = 0; k < simulated_faults; ++k) sum.faults_of[k] += r.faults_of[k];
    }
    std::printf(
        "%llu seeds from %llu on: %.0f s simulated, %llu commits (%llu by helpers), %llu faults, "
        "%llu processes, %llu standbys promoted, %llu started over, %llu tombstones, %llu waits for a full "
        "disk, %llu "
        "rebuilds, %llu programs of ports, %llu optional stages brought up again, "
        "%llu links, %llu takeovers, %llu supervisors refused, %llu lost runs\n",
        static_cast<unsigned long long>(count), static_cast<unsigned long long>(first),
        static_cast<f64>(sum.simulated_ns) / 1e9, static_cast<unsigned long long>(sum.commits),
        static_cast<unsigned long long>(sum.helped), static_cast<unsigned long long>(sum.faults),
        static_cast<unsigned long long>(sum.processes), static_cast<unsigned long long>(sum.standbys),
        static_cast<unsigned long long>(sum.started_over), static_cast<unsigned long long>(sum.tombstones),
        static_cast<unsigned long long>(sum.disk_waits), static_cast<unsigned long long>(sum.rebuilds),
        static_cast<unsigned long long>(sum.programs), static_cast<unsigned long long>(sum.returns),
        static_cast<unsigned long long>(sum.links), static_cast<unsigned long long>(sum.takeovers),
        static_cast<unsigned long long>(sum.refused), static_cast<unsigned long long>(sum.lost_runs));
    if (count < 100 || from_environment("CAROUSEL_TEST_FAULTS", ~u64{0}) != ~u64{0}) return;
    CHECK(sum.started_over > 0);
    for (const u32 each : sum.faults_of) CHECK(each > 0);
}

}  // namespace

TEST_CASE("simulated runs lose, repeat, tear and leak nothing and complete after the last fault") {
    check_seeds(seed_or(1), scaled(167));
}

// Each of them showed a fault of the supervisor, or of this simulator, that later seeds did not.
TEST_CASE("seeds that once failed lose, repeat, tear and leak nothing and complete") {
    constexpr u64 seeds[] = {
        2202901, 2401735,           // an optional sink dies before its claim, then the supervisor
        2501614,                    // a rebuild after an optional sink was started again
        2000399, 2301701, 2602868,  // a port is taken from a program that does not respond
        2002314,                    // an optional sink has failed, and the supervisor dies at once
        2102775, 2701708,           // a stage that receives has no free job word for a frame that has arrived
    };
    for (const u64 seed : seeds) {
        const simulated_run_result r = simulate_run({seed});
        if (!r.violations.empty()) FAIL_CHECK("seed " << seed << ": " << r.text());
    }
}

TEST_CASE("simulated runs whose supervisors die at any step are completed by the next ones") {
    check_seeds(seed_or(1), scaled(24), true);
}

TEST_CASE("a seed has the same trace in each simulated run, also next to another process's run") {
    const u64 seed = seed_or(1);
    const simulated_run_result a = simulate_run({seed});
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    const pid_t other = ::fork();
    REQUIRE(other >= 0);
    if (other == 0) {  // simulates until the other end is closed
        ::close(ends[1]);
        char none = 0;
        for (u32 k = 0; k < 100 && ::read(ends[0], &none, 1) < 0; ++k) (void)simulate_run({seed});
        ::_exit(0);
    }
    const simulated_run_result b = simulate_run({seed}), c = simulate_run({seed});
    ::close(ends[0]);
    ::close(ends[1]);
    ::waitpid(other, nullptr, 0);
    CHECK(a.trace == b.trace);
    CHECK(a.trace_hash == b.trace_hash);
    CHECK(a.trace_hash == c.trace_hash);
    CHECK(simulate_run({seed + 1}).trace_hash != a.trace_hash);
}

TEST_CASE("one seed", "[.]") {
    const simulated_run_result r = run_of(seed_or(1));
    std::printf("%s", r.text(from_environment("CAROUSEL_TEST_LINES", 40)).c_str());
    CHECK(r.violations.empty());
}

// To compare two builds or machines.
TEST_CASE("hashes of traces", "[.]") {
    for (u64 seed = seed_or(1), end = seed + scaled(50); seed < end; ++seed)
        std::printf("%llu %016llx\n", static_cast<unsigned long long>(seed),
                    static_cast<unsigned long long>(simulate_run({seed}).trace_hash));
}
