// The histories of a primitive with one seeded bug compiled in must fail, by the rule that the bug breaks.
#include <iostream>

#include "control.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;

TEST_CASE("control: the seeded bug shows in the histories of its primitive, by the rule that it breaks") {
    u64 done = 0;
    const campaign_result all = histories(this_control.of, false, done, this_control.rule);
    std::cout << this_control.bug << ": " << all.text() << '\n';
    INFO(this_control.bug << ": " << all.text());
    CHECK(all.failed > 0);
    CHECK_THAT(all.finding, contains(this_control.rule));
}
