// The time in which a process did not run.
#include "core/clock.hpp"
#include "core/running_time.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

TEST_CASE("a pause of the process is excluded except its usual part, and any thread finds its end") {
    constexpr u64 beat = 50 * ns_per_ms, longest = 200 * ns_per_ms;
    running_time t(longest);
    u64 now = 1000 * ns_per_s;
    CHECK(t.resumed_ns(now) == 0);
    CHECK(t.consume_gap(now) == 0);  // the first call: nothing is known about the time before it
    for (u32 k = 0; k < 20; ++k) CHECK(t.consume_gap(now += beat) == 0);
    CHECK(t.consume_gap(now += longest) == 0);
    CHECK(t.resumed_ns(now + longest) == 0);
    now += 10 * ns_per_s;
    CHECK(t.resumed_ns(now) == now);  // another thread runs first
    CHECK(t.consume_gap(now + 1) == 10 * ns_per_s + 1 - longest);
    CHECK(t.resumed_ns(now + beat) == now + 1);
    CHECK(t.consume_gap(now + beat) == 0);  // once
    CHECK(t.resumed_ns(now + beat) == now + 1);
    CHECK(t.consume_gap(now) == 0);  // a time that was read earlier by another thread
}

TEST_CASE("a gap moves the start of a deadline at most to the gap's end") {
    constexpr u64 now = 1000 * ns_per_s, gap = 9 * ns_per_s;
    CHECK(later_by_gap(now - 10 * ns_per_s, gap, now) == now - ns_per_s);
    CHECK(later_by_gap(now - ns_per_s, gap, now) == now);  // it started within the gap
    CHECK(later_by_gap(now, gap, now) == now);
    CHECK(later_by_gap(now + 1, gap, now) == now + 1);
    CHECK(later_by_gap(now - 5, 0, now) == now - 5);
}
