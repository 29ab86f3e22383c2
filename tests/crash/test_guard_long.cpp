// The same as in test_guard.cpp, with many repetitions.
#include "tests/crash/scribbles.hpp"
#include "tests/support/seed.hpp"

TEST_CASE("many stray writes into inputs end their writers alone, who are named, and no frame is harmed") {
    const carousel::u32 times = carousel::test::scaled(50);
    carousel::test::check_scribbles("scribbles", times, 1000 + 25 * times, 350);
}
