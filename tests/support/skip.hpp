#pragma once
// Skipping a test case: an exit code of its own says so (main.cpp), and only when nothing has failed.

#include <cstdio>

namespace carousel::test {

inline constexpr int exit_skipped = 77;  ///< tests/CMakeLists.txt tells ctest
inline bool skipped = false;             ///< of this process; Catch2 runs test cases on one thread

}  // namespace carousel::test

/// Ends the test case as skipped.
#define CAROUSEL_SKIP(reason)                 \
    do {                                      \
        std::printf("skipped: %s\n", reason); \
        ::carousel::test::skipped = true;     \
        SUCCEED(reason);                      \
        return;                               \
    } while (false)
