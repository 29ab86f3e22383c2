// The control of test_skip.py: what ctest must report as Passed, Failed and Skipped. Not a test itself.
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

TEST_CASE("passes") { SUCCEED(); }

TEST_CASE("skips") { CAROUSEL_SKIP("as told"); }

TEST_CASE("fails") { CHECK(1 == 2); }

TEST_CASE("fails and then skips") {
    CHECK(1 == 2);
    CAROUSEL_SKIP("too late");
}

TEST_CASE("fails as often as the exit code of a skip") {
    for (int k = 0; k < carousel::test::exit_skipped; ++k) CHECK(k < 0);
}
