// Thousands of seeded histories of the real ring code (see simulation.hpp). test_control.cpp is the control
// that shows that they can fail.

#include <string>

#include "simulation.hpp"
#include "tests/support/catch.hpp"

using carousel::u64;
using carousel::test::seeds;
using carousel::test::simulate;
using carousel::test::simulation_options;
using carousel::test::simulation_result;
using carousel::test::usual_history;

namespace {
std::string describe(const simulation_options& o, const simulation_result& r) {
    return "seed " + std::to_string(o.seed) + " instances " + std::to_string(o.instances) + ": lost " +
           std::to_string(r.lost) + " repeated " + std::to_string(r.repeated) + " torn " +
           std::to_string(r.torn) + " late " + std::to_string(r.late) + " disorder " +
           std::to_string(r.disorder) + " mixed " + std::to_string(r.mixed) + (r.stuck ? " stuck" : "");
}
}  // namespace

TEST_CASE("every frame reaches both sinks once, in order and complete, under deaths at any step") {
    u64 kills_at[5] = {};
    u64 helped = 0, seen = 0, changes = 0;
    for (u64 seed = 1; seed <= seeds(1500); ++seed) {
        const simulation_options o = usual_history(seed);
        const simulation_result r = simulate(o);
        INFO(describe(o, r));
        REQUIRE(r.sound());
        REQUIRE(r.delivered >= 2 * o.frames);
        for (int k = 0; k < 5; ++k) kills_at[k] += r.kills_at[k];
        helped += r.helped;
        seen += r.seen_by_latest;
        changes += r.changes;
    }
    // The histories are meaningful only if kills fell at every state, and if helpers and viewers took part.
    for (int k = 0; k < 4; ++k) CHECK(kills_at[k] > seeds(100));
    CHECK(helped > seeds(100));
    CHECK(seen > seeds(100));
    CHECK(changes > seeds(10'000));
}

TEST_CASE("windows of one to three frames behave like wide ones, with more frames in flight") {
    for (carousel::u32 window = 1; window <= 3; ++window) {
        u64 kills = 0;
        for (u64 seed = 1; seed <= seeds(200); ++seed) {
            simulation_options o;
            o.seed = seed;
            o.window = window;
            o.instances = 1 + seed % 2;
            o.in_flight = 1 + static_cast<carousel::u32>(seed % 4);
            o.kills = 4 + static_cast<carousel::u32>(seed % 20);
            o.stop_early = seed % 5 == 0;
            const simulation_result r = simulate(o);
            INFO("window " << window << " " << describe(o, r));
            REQUIRE(r.sound());
            REQUIRE((o.stop_early || r.delivered >= 2 * o.frames));
            for (const auto n : r.kills_at) kills += n;
        }
        CHECK(kills > seeds(500));
    }
}

TEST_CASE("a process that changes its own limit in the window at every step loses no frame") {
    for (u64 seed = 1; seed <= seeds(300); ++seed) {
        simulation_options o;
        o.seed = seed;
        o.window = seed % 2 == 0 ? 0 : 1 + static_cast<carousel::u32>(seed % 9);
        o.reach_moves = true;
        o.instances = 1 + seed % 2;
        o.in_flight = 1 + static_cast<carousel::u32>(seed % 4);
        o.kills = 4 + static_cast<carousel::u32>(seed % 20);
        const simulation_result r = simulate(o);
        INFO(describe(o, r));
        REQUIRE(r.sound());
        REQUIRE(r.delivered >= 2 * o.frames);
    }
}

TEST_CASE("a sink that takes each N-th frame gets exactly those, under deaths, stops and flipped bits") {
    for (u64 seed = 1; seed <= seeds(400); ++seed) {
        simulation_options o = usual_history(seed);
        o.every = 2 + static_cast<carousel::u32>(seed % 7);
        o.fork = seed % 2 == 0;
        o.stop_early = seed % 5 == 0;
        if (o.fork)
            o.flips = 0;
        else
            o.flips = static_cast<carousel::u32>(seed % 3);
        o.check_every = o.flips == 0 && seed % 4 == 0 ? 3 : 0;
        if (seed % 3 == 0) o.first = carousel::ring::counters_near_overflow;
        const simulation_result r = simulate(o);
        INFO(describe(o, r));
        REQUIRE(r.finding.empty());
        REQUIRE(r.sound());
        REQUIRE((o.stop_early || r.delivered >= o.frames + o.frames / o.every));
    }
}

TEST_CASE("a fork and its join lose, repeat and mix no frames during deaths, ends and stops") {
    u64 helped = 0, kills = 0;
    for (u64 seed = 1; seed <= seeds(400); ++seed) {
        simulation_options o;
        o.seed = seed;
        o.fork = true;
        o.window = seed % 2 == 0 ? 0 : 1 + static_cast<carousel::u32>(seed % 9);
        o.instances = 1 + seed % 2;
        o.in_flight = 1 + static_cast<carousel::u32>(seed % 4);
        o.kills = 4 + static_cast<carousel::u32>(seed % 20);
        o.check_every = seed % 8 == 0 ? 3 : 0;
        o.stop_early = seed % 5 == 0;
        if (seed % 7 == 0) o.ends_at = seed % 40;
        if (seed % 3 == 0) o.first = carousel::ring::counters_near_overflow;
        const simulation_result r = simulate(o);
        INFO(describe(o, r));
        REQUIRE(r.finding.empty());
        REQUIRE(r.sound());
        REQUIRE((o.stop_early || seed % 7 == 0 || r.delivered >= 2 * o.frames));
        helped += r.helped;
        for (const auto n : r.kills_at) kills += n;
    }
    CHECK(helped > seeds(100));
    CHECK(kills > seeds(1000));
}

TEST_CASE("steps between another process's read and its CAS lose and repeat no frame") {
    u64 interleavings = 0;
    for (u64 seed = 1; seed <= seeds(150); ++seed) {
        simulation_options o = usual_history(seed);
        o.interleaved = true;
        o.instances = 2;
        o.fork = seed % 4 == 0;
        const simulation_result r = simulate(o);
        INFO(describe(o, r));
        REQUIRE(r.sound());
        REQUIRE(r.delivered >= 2 * o.frames);
        interleavings += r.interleavings;
    }
    CHECK(interleavings > seeds(1500));
}

TEST_CASE("a stop in mid-run ends with every frame that a source had begun") {
    for (u64 seed = 1; seed <= seeds(300); ++seed) {
        simulation_options o;
        o.seed = seed;
        o.instances = 1 + seed % 2;
        o.frames = 1000;
        o.stop_early = true;
        const simulation_result r = simulate(o);
        INFO(describe(o, r));
        REQUIRE(r.sound());
        REQUIRE(r.delivered > 0);
    }
}

namespace {
simulation_result under_mps(u64 seed, bool kill_first) {
    simulation_options o;
    o.seed = seed;
    o.in_flight = 3;
    o.kills = 24;
    o.mps = true;
    o.kill_first = kill_first;
    return simulate(o);
}
}  // namespace

TEST_CASE("if a kill completes its victim's events, no frame is torn, as it can't commit then") {
    for (u64 seed = 1; seed <= seeds(200); ++seed) {
        INFO("seed " << seed);
        REQUIRE(under_mps(seed, false).sound());
    }
}

TEST_CASE("control: a kill before the revocation lets helpers commit incomplete frames") {
    u64 torn = 0;
    for (u64 seed = 1; seed <= 200; ++seed) torn += under_mps(seed, true).torn;
    CHECK(torn > 0);
}

TEST_CASE("an MPS domain that ends with all its events complete tears no frame of the next domain") {
    u64 ends = 0;
    for (u64 seed = 1; seed <= seeds(200); ++seed) {
        simulation_options o;
        o.seed = seed;
        o.in_flight = 3;
        o.kills = 24;
        o.instances = 1 + static_cast<carousel::u32>(seed % 2);
        o.fork = seed % 4 == 0;
        o.mps = o.domain_ends = true;
        const simulation_result r = simulate(o);
        INFO(describe(o, r));
        REQUIRE(r.sound());
        ends += r.domain_ends;
    }
    CHECK(ends > seeds(200));
}

TEST_CASE("a stream that its source ends is delivered to its end exactly, under deaths and stops") {
    u64 ended_by_stop = 0;
    for (u64 seed = 1; seed <= seeds(400); ++seed) {
        simulation_options o;
        o.seed = seed;
        o.ends_at = seed % 40;
        o.instances = 1 + seed % 2;
        o.in_flight = 1 + static_cast<carousel::u32>(seed % 4);
        o.kills = 4 + static_cast<carousel::u32>(seed % 20);
        o.stop_early = seed % 4 == 0;
        o.frames =
            o.stop_early ? 20 + seed % 200 : 1000;  // in a tenth of them the seed decides when the stop comes
        if (seed % 3 == 0) o.first = carousel::ring::counters_near_overflow;
        const simulation_result r = simulate(o);
        INFO(describe(o, r) << " beyond " << r.beyond << " end " << r.end);
        REQUIRE(r.sound());
        REQUIRE(r.end <= o.ends_at);
        if (!o.stop_early) REQUIRE(r.end == o.ends_at);
        ended_by_stop += r.end < o.ends_at ? 1 : 0;
    }
    CHECK(ended_by_stop < 100);
}

TEST_CASE("control: a supervisor that waits for a reply to STOPPING from an ended source hangs") {
    u64 stuck = 0;
    for (u64 seed = 1; seed <= 200; ++seed) {
        simulation_options o;
        o.seed = seed;
        o.frames = 0;
        o.ends_at = seed % 8;
        o.kills = 0;
        o.stop_early = o.keeps_stopping = true;
        stuck += simulate(o).stuck ? 1 : 0;
    }
    CHECK(stuck > 0);
}

TEST_CASE("the same holds while generations, laps, versions and epochs come round") {
    u64 kills_at[5] = {};
    for (u64 seed = 1; seed <= seeds(600); ++seed) {
        simulation_options o;
        o.seed = seed;
        o.instances = seed % 3 == 0 ? 2 : 1;
        o.in_flight = 1 + static_cast<carousel::u32>(seed % 4);
        o.kills = 4 + static_cast<carousel::u32>(seed % 20);
        o.first = carousel::ring::counters_near_overflow;
        o.stop_early = seed % 5 == 0;
        if (o.stop_early) o.frames = 1000;
        const simulation_result r = simulate(o);
        INFO(describe(o, r));
        REQUIRE(r.sound());
        for (int k = 0; k < 5; ++k) kills_at[k] += r.kills_at[k];
    }
    for (int k = 0; k < 4; ++k) CHECK(kills_at[k] > seeds(100));
}
