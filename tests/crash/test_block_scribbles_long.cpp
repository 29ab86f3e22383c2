// The same as in test_block_scribbles.cpp, often.
#include "tests/crash/block_scribbles.hpp"

TEST_CASE("200 stray writes into the control block end their writers alone, who are named") {
    carousel::test::check_block_scribbles("keys", 200, 9000, 350, "");
}

// Emulated, each function of the ring is some fifty calls of the kernel: fewer, or it takes minutes.
TEST_CASE("40 stray writes into the control block end their writers alone where keys are emulated") {
    carousel::test::check_block_scribbles("emulated", 40, 1500, 150, "emulated");
}
