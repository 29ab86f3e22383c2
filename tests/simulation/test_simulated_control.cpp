// The supervisor over a ring with one seeded bug: an oracle of the simulated runs must be violated.
#include <cstdio>

#include "simulated_run.hpp"
#include "tests/support/catch.hpp"

TEST_CASE("control: a simulated run shows the seeded bug of the ring") {
    using namespace carousel;
    constexpr u64 within_seeds = 100;
    for (u64 seed = 1; seed <= within_seeds; ++seed) {
        const test::simulated_run_result r = test::simulate_run({seed});
        if (r.violations.empty()) continue;
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), r.violations.front().c_str());
        return;
    }
    FAIL("no violation within " << within_seeds << " seeds");
}
