#pragma once
// What the programs of several lessons need on a GPU: opening the first GPU, looking up driver functions, and
// an MPS daemon.

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "../program.hpp"

namespace lesson {

/// Opens the first GPU. If there is no GPU, returns false with the reason in `why`.
template <size_t size>
bool begin_cuda(char (&why)[size]) {
    cudaError_t e = cudaSetDevice(0);
    if (e == cudaSuccess) e = cudaFree(nullptr);
    if (e != cudaSuccess) std::snprintf(why, size, "no GPU: %s", cudaGetErrorString(e));
    return e == cudaSuccess;
}

/// The part of the shared memory that is the same in many programs: the step that was reached, the reason why
/// there is no GPU here, and the lines that are printed at the end. The process that performs the current
/// step writes these lines. A program derives its own struct from this one.
struct record {
    std::atomic<int> step{0};
    char why[200] = {};
    char output[16384] = {};
};
inline record* recorded = nullptr;  // set by make_record(), before the first child starts

template <class T>
T* make_record() {
    T* const made = shared_memory<T>();
    recorded = made;
    return made;
}
template <class... Args>
void append_output(const char* format, Args... args) {
    const size_t used = std::strlen(recorded->output);
    std::snprintf(recorded->output + used, sizeof recorded->output - used, format, args...);
}
inline void figure(const char* name, double value) { append_output("figure %s %.6g\n", name, value); }
/// Returns false if the word does not reach the value within `ms`, or if a process has failed (a negative
/// word).
inline bool wait_for(const std::atomic<int>& word, int value, int ms) {
    for (; ms > 0 && word.load() < value && word.load() >= 0; --ms) usleep(1000);
    return word.load() >= value;
}
inline bool wait_for(int step, int ms = 20'000) { return wait_for(recorded->step, step, ms); }

/// Called if no process could open a GPU. Prints the reason: the text `why`; if `why` is empty, prints that
/// the driver ended the process. Returns the exit code.
inline int no_gpu(const char* why) {
    std::fprintf(stderr, "%s\n", why[0] != 0 ? why : "the driver ended a process that asked for a GPU");
    return 3;
}

/// Looks up a driver function by name, because a program that is linked to libcuda does not start on a
/// machine without a driver.
template <class F>
F driver(const char* name) {
    static void* library = dlopen("libcuda.so.1", RTLD_NOW);
    return library == nullptr ? nullptr : reinterpret_cast<F>(dlsym(library, name));
}

/// Returns the exit code, or -1 if the process did not end within `ms` and was killed. A process that the
/// kernel can't end (it may hang in the driver) is abandoned after another second.
inline int end_within(pid_t pid, int ms) {
    int status = 0;
    for (int killed = 0; ms > -1000; --ms, usleep(1000)) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) && killed == 0 ? WEXITSTATUS(status) : -1;
        if (ms <= 0 && killed++ == 0) kill(pid, SIGKILL);
    }
    return -1;
}

/// Starts an MPS daemon with its pipes in `folder` (CUDA_MPS_PIPE_DIRECTORY). Returns its pid once it accepts
/// clients, or -1 if none can be started here.
inline pid_t start_mps_daemon(const std::string& folder) {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        (void)!freopen("/dev/null", "r", stdin);
        (void)!freopen((folder + "/output").c_str(), "w", stdout);
        (void)!freopen((folder + "/output").c_str(), "w", stderr);
        execlp("nvidia-cuda-mps-control", "nvidia-cuda-mps-control", "-f", nullptr);
        _exit(127);
    }
    for (int k = 0; k < 3000; ++k, usleep(1000)) {
        if (waitpid(pid, nullptr, WNOHANG) == pid) return -1;
        if (access((folder + "/control").c_str(), F_OK) == 0) return pid;
    }
    (void)end_within(pid, 0);
    return -1;
}
/// Ends the daemon and its server.
inline void end_mps_daemon(pid_t pid) {
    (void)end_within(start([] {
                         FILE* to = popen("nvidia-cuda-mps-control > /dev/null 2>&1", "w");
                         if (to == nullptr) return 1;
                         std::fputs("quit -t 1\n", to);
                         return pclose(to);
                     }),
                     4'000);
    (void)end_within(pid, 3'000);
    kill(-pid, SIGKILL);  // kills a server that has ignored the request
}

}  // namespace lesson
