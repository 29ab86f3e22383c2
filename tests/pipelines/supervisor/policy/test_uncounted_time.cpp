#include "core/clock.hpp"
#include "supervisor/policy/clocks.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::supervisor;

TEST_CASE("only time within a stopped interval is left out, spread evenly over it") {
    uncounted_time t;
    CHECK(t.between(0, 1000) == 0);
    t.add(100, 200, 80);
    t.add(200, 300, 0);
    t.add(300, 400, 500);  // no more than its length
    CHECK(t.between(0, 100) == 0);
    CHECK(t.between(0, 150) == 40);
    CHECK(t.between(150, 350) == 90);
    CHECK(t.between(0, 1000) == 180);
    CHECK(t.between(400, 1000) == 0);
    CHECK(t.between(300, 200) == 0);
}

TEST_CASE("a frame of a throttled run is late only by its counted time") {
    constexpr u64 s = ns_per_s, begin = 1000 * s, now = begin + 100 * s;
    uncounted_time t;
    for (u64 k = 0; k < 100; ++k) t.add(begin + k * s, begin + (k + 1) * s, s - s / 100);
    CHECK(now - t.shifted(begin, now) == s);  // 1 % of 100 s
    CHECK(t.shifted(0, now) == 0);            // a clock that doesn't run
    process_view p;
    p.open = p.has_frame = true;
    p.frame_timeout_ns = 2 * s;
    p.heartbeat_ns = now;
    p.processing_ns = begin;
    CHECK(judge(std::span(&p, 1), now).front() == offence::processing);
    p.processing_ns = t.shifted(begin, now);
    CHECK(judge(std::span(&p, 1), now).front() == offence::none);
}

TEST_CASE("shifted clocks keep their order, and weeks of intervals take bounded memory") {
    uncounted_time t;
    for (u64 k = 0; k < 20 * uncounted_time::most_points; ++k) t.add(10 * k + 1, 10 * k + 9, 7);
    constexpr u64 now = 200 * uncounted_time::most_points;
    CHECK(t.between(0, now) == 7 * 20 * uncounted_time::most_points);
    u64 before = 0;
    for (u64 since = 1; since < now; since += 997) {
        const u64 shifted = t.shifted(since, now);
        CHECK(shifted >= before);
        CHECK(shifted <= now);
        before = shifted;
    }
}
