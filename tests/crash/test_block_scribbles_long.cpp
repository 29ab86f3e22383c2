// The same as in test_block_scribbles.cpp, often.
#include "tests/crash/block_scribbles.hpp"

TEST_CASE("200 stray writes into the control block end their writers alone, who are named") {
    carousel::test::check_block_scribbles("keys", 200, 9000, 350, "");
}

TEST_CASE("200 stray writes into the control block end their writers alone where keys are emulated") {
    carousel::test::check_block_scribbles("emulated", 200, 9000, 150, "emulated");
}
