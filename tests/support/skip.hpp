#pragma once
// Skips a test case: a separate exit code reports it (main.cpp), and only when nothing has failed.

#include <cstdio>

namespace carousel::test {

inline constexpr int exit_skipped = 77;  ///< known to ctest from tests/CMakeLists.txt
inline bool skipped = false;             ///< per process; Catch2 runs test cases on one thread

#if defined(CAROUSEL_WITHOUT_EXTRAS)
inline constexpr bool has_extras = false;
#else
inline constexpr bool has_extras = true;
#endif

}  // namespace carousel::test

/// Ends the test case as skipped.
#define CAROUSEL_SKIP(reason)                 \
    do {                                      \
        std::printf("skipped: %s\n", reason); \
        ::carousel::test::skipped = true;     \
        SUCCEED(reason);                      \
        return;                               \
    } while (false)

/// Ends a test case as skipped that uses a command or a program of an extra, in a build of the core alone.
#define CAROUSEL_NEEDS_EXTRAS() \
    if (!::carousel::test::has_extras) CAROUSEL_SKIP("this build has no extras")
