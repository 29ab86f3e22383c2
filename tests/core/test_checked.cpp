#include "core/types.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

TEST_CASE("sizes that exceed 64 bits become the largest number instead of a small one") {
    constexpr u64 most = ~u64{0};
    CHECK(add_sat(most - 1, 1) == most);
    CHECK(add_sat(most - 1, 2) == most);
    CHECK(mul_sat(u64{1} << 32U, u64{1} << 31U) == u64{1} << 63U);
    CHECK(mul_sat(u64{1} << 32U, u64{1} << 32U) == most);
    CHECK(round_up_sat(4097, 4096) == 8192);
    CHECK(round_up_sat(most - 4095, 4096) == most - 4095);
    CHECK(round_up_sat(most - 4094, 4096) == most);
    CHECK(div_ceil(most, 4096) == u64{1} << 52U);
    CHECK(is_within(8, 8, 16));
    CHECK_FALSE(is_within(8, most - 4, 16));
    CHECK_FALSE(is_within(17, 0, 16));
}
