// The same as in test_overruns.cpp, with many repetitions.
#include "tests/crash/overruns.hpp"
#include "tests/support/seed.hpp"

TEST_CASE("many writes beyond output slots end only the writers, name them, and damage no frame") {
    const carousel::u32 times = carousel::test::scaled(50);
    carousel::test::check_overruns("overruns", times, 1000 + 25 * times, 350);
}

TEST_CASE("many writes into canaries end only the writers, name them, and damage no frame") {
    const carousel::u32 times = carousel::test::scaled(50);
    carousel::test::check_overruns("canaries", times, 1000 + 25 * times, 350,
                                   carousel::test::guard_kind::canary);
}
