// Seeded histories of the semaphore (history.hpp). With a seeded bug compiled in (CAROUSEL_EXPECT_FAULT) the
// same histories must show it by the rule that is named.
#include <iostream>

#include "semaphore_history.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {
campaign_result histories(u64 first, u64 last, bool mends_the_living, u64& granted) {
    campaign_result all;
    for (u64 seed = first; seed <= last && all.failed == 0; ++seed) {
        history_options o;
        o.seed = seed;
        o.clients = 2 + static_cast<u32>(seed % 5);
        o.kills = 6 + static_cast<u32>(seed % 20);
        o.mends_the_living = mends_the_living;
        history h(o);
        all.add(h, seed, semaphore_history(h, seed, granted));
    }
    return all;
}
}  // namespace

#ifndef CAROUSEL_EXPECT_FAULT

TEST_CASE(
    "no permit is out twice or gone, nobody is overtaken or waits for ever, whoever dies at which step") {
    u64 granted = 0;
    const campaign_result all = histories(1, 2000, false, granted);
    std::cout << all.text() << '\n';
    INFO(all.text());
    REQUIRE(all.failed == 0);
    CHECK(granted > 100'000);
    using ipc::step;
    for (const step s : {step::line_joined, step::turn_known, step::permit_taken, step::line_left,
                         step::permit_released, step::mend_begun, step::mended_word, step::mend_done}) {
        INFO(ipc::name_of(s));
        CHECK(all.kills_at[static_cast<std::size_t>(s)] > 20);
    }
}

TEST_CASE("control: a mend before the fence puts a permit out twice") {
    u64 granted = 0;
    const campaign_result all = histories(1, 2000, true, granted);
    INFO(all.text());
    CHECK(all.failed > 0);
    CHECK_THAT(all.finding, contains("could not release") || contains("out twice"));
}

#else

TEST_CASE("control: the seeded bug " CAROUSEL_EXPECT_FAULT " shows in the same histories by its rule") {
    u64 granted = 0;
    const campaign_result all = histories(1, 2000, false, granted);
    INFO(all.text());
    CHECK(all.failed > 0);
    CHECK_THAT(all.finding, contains(CAROUSEL_EXPECT_FINDING));
}

#endif
