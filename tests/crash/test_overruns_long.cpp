// The same as in test_overruns.cpp, with many repetitions.
#include "tests/crash/overruns.hpp"
#include "tests/support/seed.hpp"

TEST_CASE("many writes beyond output slots end only their writers, who are named, and harm no frame") {
    const carousel::u32 times = carousel::test::scaled(50);
    carousel::test::check_overruns("overruns", times, 1000 + 25 * times, 350);
}

TEST_CASE("many writes into canaries end their writers alone, who are named, and no frame is harmed") {
    const carousel::u32 times = carousel::test::scaled(50);
    carousel::test::check_overruns("canaries", times, 1000 + 25 * times, 350,
                                   carousel::test::guard_kind::canary);
}
