// Rings on another GPU: which of the two ways to reach them a stage takes.
#include "stages/runner/depth_governor.hpp"

#include "tests/support/catch.hpp"

using carousel::u32;
using carousel::u64;
using carousel::stages::reach_choice;
using carousel::telemetry::reach_state;
using way = reach_choice::way;

namespace {

constexpr u32 all_frames = reach_choice::rounds * (reach_choice::frames_a_round + reach_choice::passed_over);

/// Passes frames to the choice, one after the other. Returns true if it has decided in the end, once.
bool chooses(reach_choice& c, u64 mapping_ns, u64 copy_ns) {
    u32 changes = 0;
    for (u32 k = 0; k < 2 * all_frames; ++k) {
        const bool copy = c.next() == way::copy;
        changes += c.add(copy, copy ? copy_ns : mapping_ns) ? 1 : 0;
    }
    return changes == 1;
}

}  // namespace

TEST_CASE("the quicker way is taken, and the copy only where it is clearly quicker") {
    struct row {
        u64 mapping, copy;
        way expected;
    };
    for (const row& r : {row{300'000, 200'000, way::copy}, row{200'000, 300'000, way::mapping},
                         row{200'000, 200'000, way::mapping}, row{200'000, 199'000, way::mapping},
                         row{200'000, 190'000, way::copy}}) {
        CAPTURE(r.mapping, r.copy);
        reach_choice c(true);
        CHECK(c.state() == reach_state::trying);
        CHECK(chooses(c, r.mapping, r.copy));
        CHECK(c.next() == r.expected);
        CHECK(c.state() == (r.expected == way::copy ? reach_state::copy : reach_state::mapping));
    }
    reach_choice c(true);
    REQUIRE(chooses(c, 300'000, 200'000));
    CHECK(c.report() ==
          "rings on another GPU are reached by a copy: 0.300 ms per frame through the mapping, 0.200 ms by a "
          "copy");
}

TEST_CASE("a stage without such rings uses the mapping without further attempts") {
    reach_choice c(false);
    CHECK(c.state() == reach_state::none);
    for (u32 k = 0; k < 2 * all_frames; ++k) {
        CHECK(c.next() == way::mapping);
        CHECK_FALSE(c.add(false, 1000));
    }
}

TEST_CASE("frames of the round before, a round's first ones and single slow ones don't count") {
    reach_choice c(true);
    u32 frames = 0;
    while (c.next() == way::mapping) {
        CHECK_FALSE(c.add(true, 1));  // a frame that went the other way
        const bool early = frames % 64 < reach_choice::passed_over;
        (void)c.add(false, early ? 1 : frames % 5 == 0 ? 50'000'000 : 200'000);
        REQUIRE(++frames < 100);
    }
    CHECK(frames == reach_choice::frames_a_round + reach_choice::passed_over);
    CHECK(chooses(c, 200'000, 180'000));
    CHECK(c.next() == way::copy);
    CHECK(c.report().find("0.200 ms per frame through the mapping") != std::string::npos);
}
