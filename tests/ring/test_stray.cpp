// What is told of a stray write fits a word.
#include "ring/stray.hpp"

#include "ring/participants.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::ring;

TEST_CASE("a stray write's word tells what was put into it") {
    for (const stray& s :
         {stray{stray_target::input, 31, 63, 0}, stray{stray_target::asset, 15, 0, 1234567890123},
          stray{stray_target::device, 0, 0, 42}, stray{stray_target::header, 31, 63, 1727},
          stray{stray_target::device, 0, 0, 42}, stray{stray_target::input, 0, 0, stray::offset_mask},
          stray{stray_target::output, 3, 63, 5000}, stray{stray_target::behind_input, 31, 1, 5000},
          stray{stray_target::block, 18, 191, 4095}}) {
        CHECK(s.pack() != 0);
        CHECK(stray::of(s.pack()) == s);
    }
}

TEST_CASE("a word that no version writes tells of no stray write") {
    CHECK(stray::of(0).what == stray_target::nothing);
    CHECK(stray::of(u64{5} << 60U).what == stray_target::nothing);  // not told
    CHECK(stray::of(u64{8} << 60U).what == stray_target::nothing);
}
