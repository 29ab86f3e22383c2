#pragma once
// Functions that concern a program's own process: its limits at its start, its signals, output that was lost
// at its end, and the process that created an object.

#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>
#include <memory>

namespace carousel {

// A set-up for Carousel programs: when a program exceeds a resource limit of its environment, it reports an
// error with a message instead of being ended by a signal.

/// Number of bytes of stack that each thread gets, regardless of the limit that the program was started with.
inline constexpr unsigned long wanted_stack = 2UL << 20U;
/// If the main thread of a program had fewer bytes of stack, the program would end with SIGSEGV.
inline constexpr unsigned long least_stack = 512UL << 10U;

/// Ignores SIGXFSZ, so that a write beyond `ulimit -f` fails with EFBIG, and raises the stack limit (`ulimit
/// -s`) to wanted_stack, or to the hard limit, for this process and its children. Called once, before any
/// thread starts. Throws out_of_resources if less than least_stack remains.
void prepare_process_limits();

/// To be called at the end of a program. If `code` is 0 and some output to stdout was lost (because of a full
/// disk or a closed file), reports the error on stderr and returns exit_code::output. Otherwise returns
/// `code`. A pipe without a reader is not a failure.
[[nodiscard]] int after_output(int code) noexcept;

// Signals that were already ignored when a program started: by `nohup` (SIGHUP), by `trap ''` in a shell, or
// as a background job of a shell without job control (SIGINT, SIGQUIT). A signal that was ignored stays
// ignored: the program neither handles nor blocks it. (A blocked signal is queued even if it is ignored, so a
// signalfd would read it.)
// Any thread may call these functions. No function here changes an inherited disposition of SIG_IGN.

/// Returns true if the signal's disposition is SIG_IGN. To be called before the program itself ignores the
/// signal.
[[nodiscard]] inline bool is_ignored(int signal) noexcept {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// The subset of `wanted` that is not ignored: the signals that a program may block and read.
[[nodiscard]] inline sigset_t not_ignored(std::initializer_list<int> wanted) noexcept {
    sigset_t set;
    sigemptyset(&set);
    for (const int s : wanted)
        if (!is_ignored(s)) sigaddset(&set, s);
    return set;
}

/// Installs `handler` unless the signal is ignored.
inline void handle_unless_ignored(int signal, void (*handler)(int)) noexcept {
    if (is_ignored(signal)) return;
    struct sigaction action {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, nullptr);
}

// Objects that belong to one process. fork() copies such an object into the child, but not its threads, its
// membership in a run or its device context. The child must neither use nor destroy its copy, because the
// destructor would act on descriptors and memory that parent and child share, or join a thread that does not
// exist in the child.

/// Identifies the process that created an object. Any thread may use it.
class owner_process {
public:
    [[nodiscard]] bool is_this() const noexcept { return ::getpid() == pid_; }
    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

private:
    pid_t pid_ = ::getpid();
};

/// Deletes an object in the process that created it; in a forked child the copy is left untouched.
template <typename T>
struct delete_by_owner {
    owner_process owner;
    void operator()(T* object) const {
        static_assert(sizeof(T) != 0);  // `T` is complete  NOLINT(bugprone-sizeof-expression)
        if (owner.is_this()) delete object;
    }
};
template <typename T>
using owned_ptr = std::unique_ptr<T, delete_by_owner<T>>;

}  // namespace carousel
