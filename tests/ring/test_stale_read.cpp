// A snapshot of a ring is outdated as soon as it is taken. With CAROUSEL_BUG_NEWER_IS_STALE compiled in, the
// same history shows the purpose of the rule.

#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {

/// The value of its group's word that a member sees for the slot of frame 0, from a snapshot that it took
/// before the slot was freed, filled and read once more.
lease_state seen_by_a_stale_read() {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    CHECK(pass(*source.w) == 0);
    link_ref link(*b.c, 0);
    ready_map ready;
    link.read_ready(ready);
    REQUIRE(ready.at[0]);
    const u32 slot = ready.at[0].index, generation = ready.at[0].word.generation;
    CHECK(pass(*sink.w) == 0);
    for (u64 frame = 1; b.lease(0, slot, 0).generation == generation; ++frame) {
        REQUIRE(frame < 200);
        CHECK(pass(*source.w) == frame);
        CHECK(pass(*sink.w) == frame);
    }
    u64 raw = 0;
    return link.lease(ready.at[0], 0, raw).state;
}

}  // namespace

#ifndef CAROUSEL_BUG_NEWER_IS_STALE
TEST_CASE("a reader that polled before a slot was reused can't lease its new contents") {
    CHECK(seen_by_a_stale_read() != lease_state::wait);
}
#else
TEST_CASE("control: the seeded bug newer_is_stale lets an outdated read lease a newer frame") {
    CHECK(seen_by_a_stale_read() == lease_state::wait);
}
#endif
