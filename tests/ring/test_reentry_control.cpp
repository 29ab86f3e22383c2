// A seeded bug in ring/reentry.cpp must show in the histories with rebuilds. Linked with each bug in turn.
#include "reentry_histories.hpp"
#include "tests/support/catch.hpp"

using namespace carousel::test;

TEST_CASE("control: the seeded bug of re-entry shows in histories with rebuilds") {
    bool shown = false;
    for (carousel::u64 seed = 1; seed <= 90 && !shown; ++seed) {
        reentry_options o;
        o.plan = reentry_plan(seed);
        o.seed = seed;
        o.damage = {seed % 2 == 0, seed % 4 == 1, seed % 3 == 0};
        o.made_once = seed % 2 == 1;
        o.state = seed % 4 > 1;
        shown = !run_with_rebuilds(o).sound();
    }
    CHECK(shown);
}
