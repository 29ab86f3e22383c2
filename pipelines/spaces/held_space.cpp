#include "spaces/spaces.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/log.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {
namespace {

constexpr int reply_timeout_ms = 10'000;

/// After fork(): system calls only, then exec.
[[noreturn]] void exec_holder(const char* program, const char* name, const char* device, int out,
                              int messages, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent died before prctl()
    ::dup2(out, STDOUT_FILENO);
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(messages < 0 ? nothing : messages, STDERR_FILENO);
    ::setpgid(0, 0);  // Ctrl-C goes to the lab, which ends this child
    ::execl(program, program, "hold", name, "--device", device, static_cast<char*>(nullptr));
    ::_exit(127);
}

/// Returns the last line that the child wrote to stderr.
std::string last_output_line(int messages) {
    char text[4096];
    const ssize_t n = messages < 0 ? 0 : ::pread(messages, text, sizeof text, 0);
    return std::string(log::last_line_of({text, n > 0 ? static_cast<std::size_t>(n) : 0}));
}

/// Reaps a child that has been killed; returns its status.
int reaped(pid_t pid) noexcept {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

}  // namespace

held_space::held_space(const std::string& programs, const std::string& purpose, const std::string& device) {
    static std::atomic<u32> number{0};
    name_ = fmt::format("{}-{}-{}", purpose, ::getpid(), number++);
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0)
        throw config_error(fmt::format("a pipe for `carousel hold {}`: {}", name_, errno_text(errno)));
    const shm::unique_fd read(fds[0]);
    shm::unique_fd write(fds[1]);
    // A file is used instead of a pipe, because the child may write long after this process has stopped
    // reading.
    const shm::unique_fd messages(::memfd_create("carousel-hold", MFD_CLOEXEC));
    const std::string program = programs + "/carousel";
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0)
        exec_holder(program.c_str(), name_.c_str(), device.c_str(), write.get(), messages.get(), parent);
    if (pid_ < 0) throw config_error(fmt::format("starting {}: {}", program, errno_text(errno)));
    write.reset();
    char first = 0;
    // The child prints its first line after it holds the space; if it ends without a line, the pipe is
    // closed.
    if (events_of(read.get(), POLLIN, now_ns() + reply_timeout_ms * ns_per_ms) != 0 &&
        read_whole(read.get(), &first, 1) == 1)
        return;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == 0) {
        ::usleep(100'000);  // an ending process closes its pipe before it becomes a zombie
        if (::waitpid(pid_, &status, WNOHANG) == 0) ::kill(pid_, SIGKILL), status = reaped(pid_);
    }
    const std::string output = last_output_line(messages.get());
    if (WIFEXITED(status) && WEXITSTATUS(status) == exit_code::no_device) throw device_error(output);
    throw config_error(fmt::format(
        "`{} hold {} --device {}` was not ready within {} s{}{}: try it by hand, and see `carousel doctor`",
        program, name_, device, reply_timeout_ms / 1000, output.empty() ? "" : ": ", output));
}

held_space::~held_space() {
    ::kill(pid_, SIGTERM);  // the holder removes its folder
    for (int k = 0; k < 200; ++k) {
        if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
        ::usleep(10'000);
    }
    ::kill(pid_, SIGKILL);
    (void)reaped(pid_);
}

}  // namespace carousel::supervisor
