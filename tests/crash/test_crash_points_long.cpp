// The same as test_crash_points.cpp, for every way in which a process can end or stop.
#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed.hpp"

using namespace carousel;
using namespace carousel::test;

TEST_CASE("any kind of death at any named step of a stage loses, repeats and tears no frame") {
    const u64 seed = test_seed();
    for (u64 round = 0; round < scaled(1); ++round)
        for (const char* how : {"kill", "abort", "exit", "throw"}) drive(how, true, seed + round * 100);
}

TEST_CASE("a stage that is stopped at any named step of a frame is replaced and can't commit later") {
    const u64 seed = test_seed();
    for (u64 round = 0; round < scaled(1); ++round) drive("stop", false, seed + round * 100);
}
