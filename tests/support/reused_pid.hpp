#pragma once
// Another process under a pid that one of a test's processes has had: in a pid namespace of the test, where
// clone3() takes a pid. For tests of what is read about a pid after its process has ended.
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "tests/support/in_child.hpp"

namespace carousel::test {

/// Runs `work` as the first process of a pid namespace, with its own /proc mounted if `needs_proc` is set.
/// Exit code 77: no namespace can be created here.
inline ending in_pid_namespace(bool needs_proc, const std::function<void()>& work) {
    return in_child([&] {
        const int spaces =
            CLONE_NEWPID | (needs_proc ? CLONE_NEWNS : 0) | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
        if (::unshare(spaces) != 0) ::_exit(77);
        const pid_t first = ::fork();
        if (first < 0) ::_exit(77);
        if (first == 0) {
            if (needs_proc && (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                               ::mount("proc", "/proc", "proc", 0, nullptr) != 0))
                ::_exit(77);
            work();
            ::_exit(0);
        }
        int status = 0;
        need(::waitpid(first, &status, 0) == first);
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
    });
}

/// Starts a child with this pid that runs `work`. Ends this process with code 77 if a pid can't be chosen.
inline pid_t fork_as(pid_t pid, const std::function<void()>& work) {
    clone_args with{};
    with.exit_signal = SIGCHLD;
    with.set_tid = reinterpret_cast<__u64>(&pid);
    with.set_tid_size = 1;
    const auto got = static_cast<pid_t>(::syscall(SYS_clone3, &with, sizeof with));
    if (got < 0) ::_exit(77);
    if (got == 0) {
        work();
        ::_exit(0);
    }
    return got;
}

}  // namespace carousel::test
