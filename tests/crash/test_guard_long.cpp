// The same as in test_guard.cpp, often.
#include "tests/crash/scribbles.hpp"

TEST_CASE("200 stray writes into inputs end their writers alone, who are named, and no frame is harmed") {
    carousel::test::check_scribbles("scribbles", 200, 5500, 350);
}
