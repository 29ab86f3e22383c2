// The same with a thousand frames and twenty kills.
#include "tests/crash/recordings.hpp"

TEST_CASE("a thousand frames, their recorder killed twenty times, are the run") {
    carousel::test::check_killed_recorder(1000, 20, 100);
}
