// The histories of stages with state, over a ring with one seeded bug, must show the bug. Linked with each
// bugged file in turn.

#include "state_histories.hpp"
#include "tests/support/catch.hpp"

TEST_CASE("control: the seeded bug shows in the histories of stages with state") {
    using namespace carousel::test;
    bool found = false;
    for (carousel::u64 seed = 1; seed <= 1000 && !found; ++seed) {
        state_options o;
        o.seed = seed;
        o.in_flight = 1 + static_cast<carousel::u32>(seed % 3);
        found = !state_history(o).sound();
    }
    CHECK(found);
}
