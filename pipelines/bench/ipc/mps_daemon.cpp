#include "bench/ipc/mps_daemon.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "core/errors.hpp"

namespace carousel::bench {
namespace {

constexpr const char* program = "nvidia-cuda-mps-control";
constexpr int start_ms = 3000, end_ms = 5000;

void send_output_to(const std::string& file) {
    const int to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600),
              from = ::open("/dev/null", O_RDONLY);
    ::dup2(from, STDIN_FILENO), ::dup2(to, STDOUT_FILENO), ::dup2(to, STDERR_FILENO);
}
/// Kills the process if it does not end by itself.
void end_within(pid_t pid, int ms) {
    for (; ms > 0; --ms, ::usleep(1000))
        if (::waitpid(pid, nullptr, WNOHANG) == pid) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

}  // namespace

mps_folder::mps_folder() : path_("/tmp/carousel-bench-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr)
        throw shm_error("a folder for the bench's MPS daemon in /tmp: " + errno_text(errno));
}
mps_folder::~mps_folder() {
    std::error_code gone;
    std::filesystem::remove_all(path_, gone);
}
void mps_folder::enter() const {
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", path_.c_str(), 1);
    ::setenv("CUDA_MPS_LOG_DIRECTORY", path_.c_str(), 1);
}

mps_daemon::mps_daemon(const mps_folder& in) : in_(in) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::setpgid(0, 0);
        in.enter();
        send_output_to(in.path() + "/output");
        ::execlp(program, program, "-f", nullptr);
        ::_exit(127);
    }
    for (int ms = 0; pid > 0 && ms < start_ms; ++ms, ::usleep(1000)) {
        if (::waitpid(pid, nullptr, WNOHANG) == pid) return;
        if (::access((in.path() + "/control").c_str(), F_OK) == 0) {
            pid_ = pid;
            return;
        }
    }
    if (pid > 0) end_within(pid, 0);
}
mps_daemon::~mps_daemon() {
    if (!runs()) return;
    const pid_t control_process = ::fork();
    if (control_process == 0) {
        in_.enter();
        int ways[2];
        if (::pipe(ways) != 0 || ::write(ways[1], "quit -t 1\n", 10) != 10) ::_exit(1);
        send_output_to(in_.path() + "/output");
        ::dup2(ways[0], STDIN_FILENO), ::close(ways[1]);
        ::execlp(program, program, nullptr);
        ::_exit(127);
    }
    if (control_process > 0) end_within(control_process, end_ms);
    end_within(pid_, end_ms);
    ::kill(-pid_, SIGKILL);  // kills a server that has ignored the request to quit
}

}  // namespace carousel::bench
