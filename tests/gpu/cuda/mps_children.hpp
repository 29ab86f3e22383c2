#pragma once
// Measurements with processes of MPS domains: the program starts itself with other arguments, once per CUDA
// process. The first process never touches CUDA, so that no fault reaches it.
#include <cuda_runtime.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace carousel::test {

inline constexpr int skipped = 77;  // the exit code that ctest knows: tests/CMakeLists.txt
inline constexpr const char* outside_mps = "/nonexistent-outside-mps";
inline constexpr int memory_fd = 201, result_fd = 200;  // of the children; above all others

struct child {
    pid_t pid = 0;
    int socket = -1;  ///< the other end is result_fd
};

/// `pipe`: the folder of the MPS daemon whose client the child is; `memory` becomes memory_fd, unless it is
/// -1.
inline child start(std::vector<std::string> argv, const std::string& pipe, int memory = -1) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::exit(1);
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::setenv("CUDA_MPS_PIPE_DIRECTORY", pipe.c_str(), 1);
        ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // a kernel's first launch waits for others otherwise
        ::dup2(ends[1], result_fd);
        if (memory >= 0) ::dup2(memory, memory_fd);
        argv.insert(argv.begin(), "child");
        std::vector<char*> words;
        for (std::string& a : argv) words.push_back(a.data());
        words.push_back(nullptr);
        ::execv("/proc/self/exe", words.data());
        ::_exit(127);
    }
    ::close(ends[1]);
    return {pid, ends[0]};
}

inline void end(const child& c) {
    ::kill(c.pid, SIGKILL);
    ::waitpid(c.pid, nullptr, 0);
    ::close(c.socket);
}

/// Queried in a child, outside of every domain.
inline bool has_gpu() {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::setenv("CUDA_MPS_PIPE_DIRECTORY", outside_mps, 1);
        int count = 0;
        ::_exit(cudaGetDeviceCount(&count) == cudaSuccess && count > 0 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status == 0;
}

}  // namespace carousel::test
