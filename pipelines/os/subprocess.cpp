#include "os/subprocess.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "os/descriptors.hpp"
#include "os/spawn.hpp"
#include "shm/fd_socket.hpp"

extern char** environ;

namespace carousel::supervisor {
namespace {

constexpr std::size_t max_output = 1U << 20U, max_messages = 4096;

struct pipe_ends {
    shm::unique_fd read, write;
};

bool make_pipe(pipe_ends& p) {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return false;
    p.read.reset(fds[0]);
    p.write.reset(fds[1]);
    return true;
}

/// If the child has ended, a write to it must fail with an error and must not end this process. SIGPIPE is
/// blocked for this thread, and a pending one is consumed.
class no_sigpipe {
public:
    no_sigpipe() {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~no_sigpipe() {
        const timespec now{};
        while (sigtimedwait(&pipe_, nullptr, &now) > 0) {
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    no_sigpipe(const no_sigpipe&) = delete;
    no_sigpipe& operator=(const no_sigpipe&) = delete;

private:
    sigset_t pipe_{}, before_{};
};

int start(const std::vector<std::string>& argv, pipe_ends& in, pipe_ends& out, pipe_ends& err, pid_t& pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_adddup2(&files, in.read.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out.write.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err.write.get(), STDERR_FILENO);
    sigset_t none, plain;
    sigemptyset(&none);
    sigemptyset(&plain);
    for (const int s : {SIGPIPE, SIGINT, SIGTERM, SIGCHLD, SIGXFSZ}) sigaddset(&plain, s);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &plain);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const int failed = ::posix_spawnp(&pid, words[0], &files, &how, words.data(), environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/// Reads the available bytes; closes `from` at EOF.
void drain(shm::unique_fd& from, std::string& into) {
    char buffer[16384];
    const ssize_t n = ::read(from.get(), buffer, sizeof buffer);
    if (n > 0)
        into.append(buffer, static_cast<std::size_t>(n));
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        from.reset();
}

/// Writes the input and reads until EOF of both outputs. Returns false at the deadline.
bool converse(pipe_ends& in, pipe_ends& out, pipe_ends& err, const std::string& input, subprocess_result& r,
              u64 deadline) {
    std::size_t written = 0;
    ::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
    if (input.empty()) in.write.reset();
    while (out.read || err.read) {
        if (now_ns() >= deadline) return false;
        pollfd fds[] = {
            {in.write.get(), POLLOUT, 0}, {out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
        if (poll_until(fds, 3, deadline) < 0) return false;
        if (fds[0].revents != 0) {
            const ssize_t n = ::write(in.write.get(), input.data() + written, input.size() - written);
            if (n > 0) written += static_cast<std::size_t>(n);
            if (written == input.size() || (n < 0 && errno != EAGAIN && errno != EINTR)) in.write.reset();
        }
        if (fds[1].revents != 0) drain(out.read, r.output);
        if (fds[2].revents != 0) drain(err.read, r.messages);
        if (r.output.size() > max_output) {
            r.error = "more than 1 MiB of output";
            return false;
        }
        if (r.messages.size() > 4 * max_messages) r.messages.erase(0, r.messages.size() - max_messages);
    }
    return true;
}

/// Waits for the child's end. Returns false at the deadline.
bool wait_for(pid_t pid, int& status, u64 deadline) {
    for (;;) {
        const pid_t got = ::waitpid(pid, &status, WNOHANG);
        if (got == pid) return true;
        if (got < 0 && errno != EINTR) return true;
        if (now_ns() >= deadline) return false;
        ::usleep(2000);
    }
}

}  // namespace

std::string subprocess_result::ending(u32 timeout_ms) const {
    if (!error.empty()) return error;
    if (timed_out) return fmt::format("no answer within {:.3g} s", timeout_ms / 1000.0);
    if (signal != 0) return fmt::format("signal {} ({})", signal, signal_name(signal));
    return fmt::format("exit code {}", exit_code);
}

subprocess_result run_subprocess(const std::vector<std::string>& argv, const std::string& input,
                                 u32 timeout_ms) {
    subprocess_result r;
    pipe_ends in, out, err;
    pid_t pid = 0;
    const int failed = retry_shortage(
        [&] {
            if (!make_pipe(in) || !make_pipe(out) || !make_pipe(err)) return errno;
            return start_child(pid, [&] { return start(argv, in, out, err, pid); });
        },
        std::min(shortage_patience_ns, timeout_ms * ns_per_ms));
    if (failed != 0) {
        r.short_of_resources = is_shortage(failed);
        r.error = no_thread_text(failed);
        return r;
    }
    r.started = true;
    in.read.reset();
    out.write.reset();
    err.write.reset();
    const no_sigpipe guard;
    const u64 deadline = now_ns() + timeout_ms * ns_per_ms;
    int status = 0;
    if (!converse(in, out, err, input, r, deadline) || !wait_for(pid, status, deadline)) {
        r.timed_out = true;
        ::kill(-pid, SIGKILL);  // kills the child's process group, whose number is not reused while the child
                                // is not reaped
        while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        forget_child(pid);
        return r;
    }
    forget_child(pid);
    if (WIFSIGNALED(status)) r.signal = WTERMSIG(status);
    if (WIFEXITED(status)) r.exit_code = WEXITSTATUS(status);
    if (r.messages.size() > max_messages) r.messages.erase(0, r.messages.size() - max_messages);
    return r;
}

std::string signal_name(int number) {
    const char* name = sigabbrev_np(number);
    return name == nullptr ? fmt::format("signal {}", number) : std::string("SIG") + name;
}

int signal_from(const std::string& text) {
    if (text.empty() || text.size() > 16) return 0;
    if (std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
        const int number = text.size() > 3 ? 0 : std::stoi(text);
        return number >= 1 && number < NSIG ? number : 0;
    }
    std::string upper;
    for (const unsigned char c : text) upper += static_cast<char>(std::toupper(c));
    if (upper.starts_with("SIG")) upper.erase(0, 3);
    for (int number = 1; number < NSIG; ++number) {
        const char* name = sigabbrev_np(number);
        if (name != nullptr && upper == name) return number;
    }
    return 0;
}

}  // namespace carousel::supervisor
