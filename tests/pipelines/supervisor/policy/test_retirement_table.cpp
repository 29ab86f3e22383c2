// The table of a process's end: pair by pair, what no path may do, and what was recorded before the table was
// there.
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include "core/clock.hpp"
#include "supervisor/policy/retirement.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using S = retirement_step;
using E = retirement_event;
using A = retirement_action;

constexpr u8 steps = retirement_steps, events = retirement_events;

template <typename T>
T named(const std::string& name, u8 count) {
    for (u8 k = 0; k < count; ++k)
        if (name == name_of(static_cast<T>(k))) return static_cast<T>(k);
    FAIL("no such name: " << name);
    return T{};
}

/// ACTION, or ACTION:STEP where the step changes.
std::string transition_text(S s, E e) {
    const retirement_move m = on(s, e);
    return m.next == s ? name_of(m.action) : std::string(name_of(m.action)) + ":" + name_of(m.next);
}

}  // namespace

TEST_CASE("each pair of a step and an event has its row, or is refused") {
    // Columns: the event, then the steps in their order: working, condemned, doomed, revoked, fenced_early,
    // fenced, reclaimed. "-": refused.
    const std::vector<std::vector<std::string>> rows{
        {"condemn", "none:condemned", "none", "none", "none", "none", "none", "none"},
        {"succession", "-", "name_successor", "none", "none", "none", "none", "none"},
        {"succeeded", "-", "doom:doomed", "-", "-", "-", "-", "-"},
        {"words", "-", "-", "revoke", "none", "revoke", "none", "none"},
        {"words_taken", "-", "-", "none:revoked", "-", "none:fenced", "-", "-"},
        {"breaks", "-", "-", "wait", "renew_domain", "wait", "renew_domain", "-"},
        {"kill_due", "-", "-", "kill", "kill", "kill", "kill", "kill"},
        {"frames", "-", "-", "requeue", "requeue", "requeue", "requeue", "none"},
        {"verdict_due", "-", "-", "judge", "judge", "judge", "judge", "judge"},
        {"gone", "-", "wait", "fence:fenced_early", "fence:fenced", "none", "none", "none"},
        {"buffers", "-", "-", "wait", "wait", "wait", "reclaim", "none"},
        {"buffers_free", "-", "-", "-", "-", "-", "none:reclaimed", "-"},
    };
    REQUIRE(rows.size() == events);
    for (u8 e = 0; e < events; ++e) {
        REQUIRE(rows[e].size() == steps + 1U);
        CHECK(rows[e][0] == name_of(static_cast<E>(e)));
        for (u8 s = 0; s < steps; ++s) {
            CAPTURE(name_of(static_cast<S>(s)), rows[e][0]);
            CHECK(transition_text(static_cast<S>(s), static_cast<E>(e)) ==
                  (rows[e][s + 1U] == "-" ? "refuse" : rows[e][s + 1U]));
        }
    }
}

TEST_CASE("whatever comes in whatever order, nothing is done before what it stands on") {
    // Along every path: the steps that the protocol asks for have been taken before the one that needs them.
    struct past {
        S step = S::working;
        bool doomed = false, taken = false, fenced = false;
        bool operator<(const past& o) const {
            return std::tie(step, doomed, taken, fenced) < std::tie(o.step, o.doomed, o.taken, o.fenced);
        }
    };
    std::set<past> seen;
    std::vector<past> todo{{}};
    while (!todo.empty()) {
        const past p = todo.back();
        todo.pop_back();
        if (!seen.insert(p).second) continue;
        for (u8 k = 0; k < events; ++k) {
            const auto e = static_cast<E>(k);
            const retirement_move m = on(p.step, e);
            if (m.action == A::refuse) continue;
            CAPTURE(name_of(p.step), name_of(e));
            past q = p;
            q.step = m.next;
            q.doomed = q.doomed || m.action == A::doom;
            q.taken = q.taken || e == E::words_taken;
            q.fenced = q.fenced || m.action == A::fence;
            const bool after_doom = m.action == A::revoke || m.action == A::kill || m.action == A::requeue ||
                                    m.action == A::judge || m.action == A::fence;
            if (after_doom) CHECK(p.doomed);
            if (m.action == A::renew_domain) CHECK(p.taken);
            if (m.action == A::reclaim) CHECK((p.taken && p.fenced));
            if (m.action == A::fence) CHECK_FALSE(p.fenced);  // once
            if (m.action == A::doom) CHECK_FALSE(p.doomed);
            if (m.next == S::reclaimed) CHECK((q.taken && q.fenced));
            todo.push_back(q);
        }
    }
    std::set<S> reached;
    for (const past& p : seen) reached.insert(p.step);
    CHECK(reached.size() == steps);
}

TEST_CASE("from each step a process comes to its end when everything has come about") {
    for (u8 first = 0; first < steps; ++first) {
        S s = static_cast<S>(first);
        for (int round = 0; round < 3; ++round)
            for (u8 k = 0; k < events; ++k)
                if (const retirement_move m = on(s, static_cast<E>(k)); m.action != A::refuse) s = m.next;
        CAPTURE(name_of(static_cast<S>(first)));
        CHECK(s == S::reclaimed);
    }
}

TEST_CASE("the old retirement under two thousand faults equals the table's result") {
    std::ifstream in(CAROUSEL_RETIREMENTS);
    REQUIRE(in);
    u64 histories = 0, moves = 0;
    std::set<std::string> actions;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("#")) continue;
        std::istringstream words(line);
        u64 count = 0;
        std::string begin;
        REQUIRE(words >> count >> begin);
        histories += count;
        S s = named<S>(begin, steps);
        for (std::string move; words >> move; ++moves) {
            const std::size_t first = move.find('>'), second = move.rfind('>');
            CAPTURE(line, move);
            REQUIRE(first < second);
            const retirement_move m = on(s, named<E>(move.substr(0, first), events));
            REQUIRE(name_of(m.action) == move.substr(first + 1, second - first - 1));
            REQUIRE(name_of(m.next) == move.substr(second + 1));
            actions.insert(name_of(m.action));
            s = m.next;
        }
    }
    CHECK(histories > 2000);
    CHECK(moves > 200);
    CHECK(actions.size() == 10);  // all but wait and refuse
}

TEST_CASE("a process is killed once its words are revoked, a leaving one gets time") {
    constexpr u64 ms = ns_per_ms;
    kill_view v;
    v.stop_timeout_ns = 10 * ns_per_s;
    const auto due_at = [&](u64 ns) { return v.seen_dead_for_ns = ns, kill_is_due(v); };
    SECTION("words not taken yet") {
        CHECK_FALSE(due_at(100 * ms));
        CHECK(due_at(100 * ms + 1));
    }
    SECTION("words taken") {
        v.revoked = true;
        CHECK(due_at(0));
    }
    SECTION("it leaves behind the last frame") {
        v.revoked = v.through = true;
        CHECK_FALSE(due_at(10 * ns_per_s));
        CHECK(due_at(10 * ns_per_s + 1));
    }
    SECTION("it leaves by itself") {
        v.revoked = v.leaving = true;
        CHECK_FALSE(due_at(ns_per_s));
        CHECK(due_at(ns_per_s + 1));
    }
    SECTION("everybody ends") {
        v.paused = v.through = true;
        CHECK(due_at(0));
    }
    SECTION("a test delays it") {
        v.revoked = true;
        v.delay_ns = 500 * ms;
        CHECK_FALSE(due_at(500 * ms - 1));
        CHECK(due_at(500 * ms));
    }
}

TEST_CASE("the policy is queried at once if stages wait, otherwise at the exit status") {
    verdict_view v;
    CHECK_FALSE(verdict_is_due(v));  // it delivered nothing and reported nothing
    v.delivered = true;
    CHECK(verdict_is_due(v));
    SECTION("never restarted") { v.never_restarted = true; }
    SECTION("behind the last frame") { v.through = true; }
    SECTION("leaving by itself") { v.leaving = true; }
    if (v.never_restarted || v.through || v.leaving) CHECK_FALSE(verdict_is_due(v));
    SECTION("and it was killed for that") {
        v.leaving = v.kill_sent = true;
        CHECK(verdict_is_due(v));
    }
    v.ended = true;
    CHECK(verdict_is_due(v));
    v.ended = false;
    v.cause_known = true;
    CHECK(verdict_is_due(v));
}
