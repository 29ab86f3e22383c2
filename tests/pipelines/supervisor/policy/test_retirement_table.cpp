// The sequence of a process's end: the actions that each step permits, the actions that no path may do, and
// the recorded paths under faults.
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
using A = retirement_action;

constexpr u8 steps = retirement_steps, actions = retirement_actions;

template <typename T>
T named(const std::string& name, u8 count) {
    for (u8 k = 0; k < count; ++k)
        if (name == name_of(static_cast<T>(k))) return static_cast<T>(k);
    FAIL("no such name: " << name);
    return T{};
}

/// The step after the action, or "-" if the step does not permit it.
std::string transition_text(S s, A a) {
    if (!is_done_in(s, a)) return "-";
    return step_after(s, a) == s ? "stays" : name_of(step_after(s, a));
}

}  // namespace

TEST_CASE("the permitted actions and the successor of each step") {
    // Columns: the action, then the steps in their order: working, condemned, doomed, revoked, fenced_early,
    // fenced, reclaimed. "-": not done.
    const std::vector<std::vector<std::string>> rows{
        {"succeed", "-", "doomed", "-", "-", "-", "-", "-"},
        {"revoke", "-", "-", "revoked", "-", "fenced", "-", "-"},
        {"renew_domain", "-", "-", "-", "stays", "-", "stays", "-"},
        {"kill", "-", "-", "stays", "stays", "stays", "stays", "stays"},
        {"requeue", "-", "-", "stays", "stays", "stays", "stays", "-"},
        {"judge", "-", "-", "stays", "stays", "stays", "stays", "stays"},
        {"fence", "-", "-", "fenced_early", "fenced", "-", "-", "-"},
        {"reclaim", "-", "-", "-", "-", "-", "reclaimed", "-"},
    };
    REQUIRE(rows.size() == actions);
    for (u8 a = 0; a < actions; ++a) {
        REQUIRE(rows[a].size() == steps + 1U);
        CHECK(rows[a][0] == name_of(static_cast<A>(a)));
        for (u8 s = 0; s < steps; ++s) {
            CAPTURE(name_of(static_cast<S>(s)), rows[a][0]);
            CHECK(transition_text(static_cast<S>(s), static_cast<A>(a)) == rows[a][s + 1U]);
        }
    }
}

TEST_CASE("no action is done before its prerequisites, for any order of success") {
    // Along every path: the steps that the protocol requires have been taken before the one that needs them.
    struct past {
        S step = S::condemned;
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
        for (u8 k = 0; k < actions; ++k) {
            const auto a = static_cast<A>(k);
            if (!is_done_in(p.step, a)) continue;
            CAPTURE(name_of(p.step), name_of(a));
            past q = p;  // the action succeeds; if it does not, nothing changes
            q.step = step_after(p.step, a);
            q.doomed = q.doomed || a == A::succeed;
            q.taken = q.taken || a == A::revoke;
            q.fenced = q.fenced || a == A::fence;
            if (a != A::succeed) CHECK(p.doomed);
            if (a == A::succeed) CHECK_FALSE(p.doomed);  // once
            if (a == A::renew_domain) CHECK(p.taken);
            if (a == A::reclaim) CHECK((p.taken && p.fenced));
            if (a == A::fence) CHECK_FALSE(p.fenced);  // once
            if (q.step == S::reclaimed) CHECK((q.taken && q.fenced));
            todo.push_back(q);
        }
    }
    std::set<S> reached{S::working};
    for (const past& p : seen) reached.insert(p.step);
    CHECK(reached.size() == steps);
}

TEST_CASE("each step leads to the end of the process if every action succeeds") {
    for (u8 first = static_cast<u8>(S::condemned); first < steps; ++first) {
        S s = static_cast<S>(first);
        for (u8 k = 0; k < actions; ++k)  // one poll is enough
            if (is_done_in(s, static_cast<A>(k))) s = step_after(s, static_cast<A>(k));
        CAPTURE(name_of(static_cast<S>(first)));
        CHECK(s == S::reclaimed);
    }
}

TEST_CASE("retirement under two thousand faults follows the permitted sequence") {
    std::ifstream in(CAROUSEL_RETIREMENTS);
    REQUIRE(in);
    u64 histories = 0, moves = 0;
    std::set<std::string> done;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("#")) continue;
        std::istringstream words(line);
        u64 count = 0;
        std::string begin;
        REQUIRE(words >> count >> begin);
        histories += count;
        S s = named<S>(begin, steps);
        for (std::string move; words >> move; ++moves) {
            const std::size_t to = move.find('>');
            CAPTURE(line, move);
            REQUIRE(to != std::string::npos);
            const A a = named<A>(move.substr(0, to), actions);
            const S next = named<S>(move.substr(to + 1), steps);
            REQUIRE(is_done_in(s, a));
            // An attempt that does not succeed leaves the step as it is.
            const bool may_fail = a == A::succeed || a == A::revoke || a == A::reclaim;
            REQUIRE((next == step_after(s, a) || (may_fail && next == s)));
            done.insert(name_of(a));
            s = next;
        }
    }
    CHECK(histories > 2000);
    CHECK(moves > 100);
    CHECK(done.size() == actions);
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
    SECTION("it abandons the last frame") {
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
