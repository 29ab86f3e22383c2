// Orphans of a child subreaper, which gets them as PID 1 of a PID namespace does.
#include "os/spawn.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "os/subprocess.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

/// Orphans of a test case become this process's children.
struct subreaper {
    subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
    ~subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
    subreaper(const subreaper&) = delete;
    subreaper& operator=(const subreaper&) = delete;
};

/// Calls reap_orphans() until `count` are reaped; how many were.
u32 reap_until(u32 count, const std::function<bool(pid_t)>& known) {
    u32 reaped = 0;
    for (int k = 0; k < 2000 && reaped < count; ++k) {
        reaped += reap_orphans(known);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return reaped;
}

const auto none_known = [](pid_t) { return false; };

}  // namespace

TEST_CASE("a process that inherits no orphans is not asked to reap any") {
    CHECK_FALSE(inherits_orphans());
    const subreaper on;
    CHECK(inherits_orphans());
}

TEST_CASE("orphans are reaped, and the exit statuses of children that other code reaps remain") {
    const subreaper on;
    // A child of this process that has ended and is not reaped yet; it started before all orphans.
    const spawned own = spawn({.argv = {"/bin/sh", "-c", "exit 7"}, .environment = {}});
    siginfo_t ended{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(own.pid), &ended, WEXITED | WNOWAIT) == 0);
    // A child that the caller handles: an adopted stage.
    const pid_t known = ::fork();
    if (known == 0) ::_exit(9);
    REQUIRE(::waitid(P_PID, static_cast<id_t>(known), &ended, WEXITED | WNOWAIT) == 0);
    const auto is_known = [&](pid_t pid) { return pid == known; };
    CHECK(reap_orphans(is_known) == 0);
    const subprocess_result parent =
        run_subprocess({"/bin/sh", "-c", "for k in 1 2 3 4 5; do (exec sleep 0.01) & done"}, "", 20'000);
    CHECK(parent.succeeded());
    CHECK(reap_until(5, is_known) == 5);
    CHECK(reap(own.pidfd.get()).exit_code == 7);
    int status = 0;
    CHECK(::waitpid(known, &status, WNOHANG) == known);
    CHECK(WEXITSTATUS(status) == 9);
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // none remains
}

TEST_CASE("a child that has been reaped is forgotten: its number may be an orphan's later") {
    const subreaper on;
    pid_t pid = 0;
    CHECK(start_child(pid, [&] {
              pid = ::fork();
              if (pid == 0) ::_exit(3);
              return pid < 0 ? errno : 0;
          }) == 0);
    siginfo_t ended{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT) == 0);
    CHECK(reap_orphans(none_known) == 0);
    forget_child(pid);
    CHECK(reap_until(1, none_known) == 1);
}
