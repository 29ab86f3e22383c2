// Histories of stages with state (state_histories.hpp): each state is the one of a run without faults, and
// each rule is needed. test_state_control.cpp has the rules that are in the ring's own code.

#include "simulation.hpp"
#include "state_histories.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {

std::string describe(const state_options& o, const state_outcome& r) {
    return "seed " + std::to_string(o.seed) + ": wrong " + std::to_string(r.wrong) + " lost " +
           std::to_string(r.lost) + " repeated " + std::to_string(r.repeated) + " disorder " +
           std::to_string(r.disorder) + " spurious " + std::to_string(r.spurious) + " seen wrong " +
           std::to_string(r.seen_wrong) + (r.stuck ? " stuck " : " ") + r.finding;
}

state_options history_of(u64 seed) {
    state_options o;
    o.seed = seed;
    o.in_flight = 1 + static_cast<u32>(seed % 3);
    o.window = static_cast<u32>(seed % 5);
    o.source = seed % 2 == 0;
    o.sink = seed % 5 < 2;
    o.tombstones = seed % 4 == 1;
    o.watched = seed % 3 == 0;
    o.kills = (o.tombstones ? 30 : 4) + static_cast<u32>(seed % 20);
    o.kill_rate = o.tombstones ? 30 : 8;
    return o;
}

/// The first seed whose history is sound, but has wrong or lost frames without the rule; 0: none.
u64 first_wrong(bool state_options::*rule) {
    for (u64 seed = 1; seed <= 2000; ++seed) {
        // Deterministic stages make an aborted state again, bit for bit: what an order of commits is for is
        // shown by a frame that becomes a tombstone.
        state_options o = history_of(4 * seed + 1);
        o.in_flight = 1 + static_cast<u32>(seed % 3);
        o.*rule = false;
        const state_outcome without = state_history(o);
        o.*rule = true;
        if (without.wrong + without.lost + without.seen_wrong > 0 && state_history(o).sound()) return seed;
    }
    return 0;
}

}  // namespace

TEST_CASE("states of killed stages are those of a run without faults, under deaths at any step") {
    u64 kills = 0, tombstones = 0, late_writes = 0, seen = 0;
    for (u64 seed = 1; seed <= seeds(800); ++seed) {
        const state_options o = history_of(seed);
        const state_outcome r = state_history(o);
        INFO(describe(o, r));
        REQUIRE(r.sound());
        kills += r.kills, tombstones += r.tombstones, late_writes += r.late_writes, seen += r.seen;
    }
    // The histories are meaningful only if these have happened.
    INFO(kills << " kills, " << tombstones << " tombstones, " << late_writes << " late writes, " << seen
               << " seen");
    CHECK(kills > seeds(5000));
    CHECK(tombstones > seeds(500));
    CHECK(late_writes > seeds(500));
    CHECK(seen > seeds(500));
}

TEST_CASE("a consumer that commits for a stage with state makes a state wrong") {
    CHECK(first_wrong(&state_options::owner_commits) != 0);
}

TEST_CASE("a stage that commits its frames out of order makes a state wrong") {
    CHECK(first_wrong(&state_options::commits_in_order) != 0);
}

TEST_CASE("work that does not wait for that on the previous frame makes a state wrong") {
    CHECK(first_wrong(&state_options::waits_for_previous) != 0);
}

TEST_CASE("a state that is written in finish() is wrong") {
    CHECK(first_wrong(&state_options::writes_in_process) != 0);
}

TEST_CASE("a tombstone that does not copy the state makes the next one wrong") {
    CHECK(first_wrong(&state_options::copies_at_tombstone) != 0);
}
