// The same as in test_guard.cpp, with many repetitions.
#include "tests/crash/scribbles.hpp"
#include "tests/support/seed.hpp"

TEST_CASE("many wild writes to inputs end only the writers, which are named, and damage no frame") {
    const carousel::u32 times = carousel::test::scaled(50);
    carousel::test::check_scribbles("scribbles", times, 1000 + 25 * times, 350);
}
