#pragma once
// Runs a part of a test in a separate process, for what can be done once per process, or ends it.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "tests/support/catch.hpp"

namespace carousel::test {

struct ending {
    int signal = 0, code = -1;
    bool operator==(const ending&) const = default;
};
inline constexpr ending went_through{0, 0}, faulted{SIGSEGV, -1};

/// A check in a child: a false condition ends it with a code that no test expects.
inline void need(bool so) {
    if (!so) ::_exit(9);
}

inline ending in_child(const std::function<void()>& work) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL);  // the test's own handler would print a report
        work();
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status)) return {WTERMSIG(status), -1};
    return {0, WEXITSTATUS(status)};
}

}  // namespace carousel::test
