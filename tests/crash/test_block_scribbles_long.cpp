// The same as in test_block_scribbles.cpp, with many repetitions.
#include "tests/crash/block_scribbles.hpp"
#include "tests/support/seed.hpp"

TEST_CASE("many wild writes to the control block end only the writers, and the report names them") {
    const carousel::u32 times = carousel::test::scaled(50);
    carousel::test::check_block_scribbles("keys", times, 1000 + 40 * times, 350, "");
}

// Emulated, each function of the ring takes some fifty system calls: fewer repetitions, or it takes minutes.
TEST_CASE("many wild writes to the control block end only their writers where keys are emulated") {
    const carousel::u32 times = carousel::test::scaled(15);
    carousel::test::check_block_scribbles("emulated", times, 300 + 30 * times, 150, "emulated");
}
