// The same as in test_overruns.cpp, often.
#include "tests/crash/overruns.hpp"

TEST_CASE("200 writes beyond output slots end their writers alone, who are named, and no frame is harmed") {
    carousel::test::check_overruns("overruns", 200, 5500, 350);
}

TEST_CASE("200 writes into canaries end their writers alone, who are named, and no frame is harmed") {
    carousel::test::check_overruns("canaries", 200, 5500, 350, carousel::test::guard_kind::canary);
}
