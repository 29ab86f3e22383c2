#include "os/held_space.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "core/errors.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {
namespace {

constexpr int answer_ms = 10'000;

/// Behind fork(): system calls alone, then another program.
[[noreturn]] void become_holder(const char* program, const char* name, const char* device, int out,
                                pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it has died before the line above
    ::dup2(out, STDOUT_FILENO);
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDERR_FILENO);
    ::setpgid(0, 0);  // Ctrl-C is for the lab, which ends it
    ::execl(program, program, "hold", name, "--device", device, static_cast<char*>(nullptr));
    ::_exit(127);
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
    const std::string program = programs + "/carousel";
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) become_holder(program.c_str(), name_.c_str(), device.c_str(), write.get(), parent);
    if (pid_ < 0) throw config_error(fmt::format("starting {}: {}", program, errno_text(errno)));
    write.reset();
    pollfd one{read.get(), POLLIN, 0};
    char first = 0;
    // Its first line says that it holds; its end without one closes the pipe.
    if (::poll(&one, 1, answer_ms) != 1 || ::read(read.get(), &first, 1) != 1) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        throw config_error(
            fmt::format("`{} hold {}` held nothing within {} s: try it by hand, and see `carousel doctor`",
                        program, name_, answer_ms / 1000));
    }
}

held_space::~held_space() {
    ::kill(pid_, SIGINT);  // it takes its folder with it
    for (int k = 0; k < 200; ++k) {
        if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
        ::usleep(10'000);
    }
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

}  // namespace carousel::supervisor
