// A ring with one seeded bug must fail in the named scenario, within the stated number of orders. The search
// is deterministic: it finds the same order each time.

#include <algorithm>
#include <cstdio>

#include "explored_scenarios.hpp"

// Of the seeded bug that is linked (CMakeLists.txt).
extern const char* const shown_in;
extern const unsigned long shown_within;

using namespace carousel;
using namespace carousel::test;

TEST_CASE("control: the seeded bug shows within the stated number of orders") {
    const auto* const s = std::find_if(std::begin(scenarios), std::end(scenarios),
                                       [](const named_scenario& x) { return x.name == shown_in; });
    REQUIRE(s != std::end(scenarios));
    const u32 preemptions = std::max(s->preemptions, 2U);
    const explored e =
        s->explore([&](const explored_scenario& x) { return explore(x, preemptions, shown_within); });
    const std::string text = e.text();
    std::printf("%s, %u preemptions: %s\n", shown_in, preemptions, text.c_str());
    INFO(text);
    CHECK(!e.finding.empty());
}
