#include "core/clock.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

namespace {
constexpr i64 second = 1'000'000'000;
}

TEST_CASE("a process has the same clock as itself") {
    CHECK(clock_shift_ns(own_clock(), own_clock()) == 0);
    clock_identity without_proc = own_clock();
    without_proc.time_namespace.clear();
    without_proc.offset_ns.reset();
    CHECK(clock_shift_ns(own_clock(), without_proc) == 0);
}

TEST_CASE("clocks of two time namespaces differ by their offsets or by their distances to real time") {
    const clock_identity first{"time:[1]", 0, 50 * second}, ahead{"time:[2]", 100 * second, -50 * second};
    CHECK(clock_shift_ns(ahead, first) == 100 * second);
    CHECK(clock_shift_ns(first, ahead) == -100 * second);
    CHECK(clock_shift_ns({"", {}, -50 * second}, first) == 100 * second);
    CHECK(clock_shift_ns({"", {}, 50 * second + 1000}, first) == 0);  // two readings
    CHECK(clock_shift_ns({"time:[2]", 0, 50 * second}, first) == 0);
}

TEST_CASE("one time namespace is one clock, also when a step of the system's time alters readings") {
    CHECK(clock_shift_ns({"time:[1]", {}, 0}, {"time:[1]", {}, 3600 * second}) == 0);
}

TEST_CASE("an unknown clock is not refused") {
    CHECK(clock_shift_ns({}, own_clock()) == 0);
    CHECK(clock_shift_ns({"time:[2]"}, {"time:[1]", 5}) == 0);
}

TEST_CASE("the reason states the offset of the clock and its direction") {
    CHECK(clock_shift_text(100 * second).find("100.000 s ahead of the run's") != std::string::npos);
    CHECK(clock_shift_text(-second / 2).find("0.500 s behind the run's") != std::string::npos);
}
