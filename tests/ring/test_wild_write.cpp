// The record of a wild write fits into one word.
#include "ring/exit_notes.hpp"

#include "ring/participants.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::ring;

TEST_CASE("a wild write's word describes the written memory") {
    for (const wild_write& s : {wild_write{wild_write_target::input, 31, 63, 0},
                                wild_write{wild_write_target::asset, 15, 0, 1234567890123},
                                wild_write{wild_write_target::device, 0, 0, 42},
                                wild_write{wild_write_target::header, 31, 63, 1727},
                                wild_write{wild_write_target::device, 0, 0, 42},
                                wild_write{wild_write_target::input, 0, 0, wild_write::offset_mask},
                                wild_write{wild_write_target::output, 3, 63, 5000},
                                wild_write{wild_write_target::after_input, 31, 1, 5000},
                                wild_write{wild_write_target::block, 18, 191, 4095}}) {
        CHECK(s.pack() != 0);
        CHECK(wild_write::of(s.pack()) == s);
    }
}

TEST_CASE("a word that no version writes describes no wild write") {
    CHECK(wild_write::of(0).what == wild_write_target::nothing);
    CHECK(wild_write::of(u64{5} << 60U).what == wild_write_target::nothing);  // no record
    CHECK(wild_write::of(u64{8} << 60U).what == wild_write_target::nothing);
}
