#pragma once
// What the programs of several lessons need: the time, child processes, memory that they share, and
// descriptors over a socket. Uses only POSIX; a program consists of its own file and this file.

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>

namespace lesson {

inline double now_us() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

/// A program of a lesson has no options. If an option is given, prints the usage and returns true.
inline bool wants_usage(int argc, char** argv, const char* usage) {
    if (argc < 2 || argv[1][0] != '-') return false;
    std::fprintf(stderr, "usage: %s   (measures and prints figures)\n", usage);
    return true;
}

/// Returns the exit code of `measure`; if it throws an `Error`, prints the error's message and returns the
/// error's code.
template <class Error, class Measure>
int exit_code_of(Measure measure) {
    try {
        return measure();
    } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
}

/// Starts a process that executes `body` and exits with the result of `body`, or with 9 if `body` throws. As
/// a last resort, a process that is still alive after 50 s is killed by its own alarm.
template <class Body>
pid_t start(Body body) {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(50);
        int code = 9;
        try {
            code = body();
        } catch (const std::exception& e) {
            std::fprintf(stderr, "%s\n", e.what());
        }
        std::fflush(stdout);
        _exit(code);
    }
    return pid;
}

/// Waits for the process. Returns the exit code of the process, or minus the number of the signal that ended
/// the process.
inline int end_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// Memory for an object that later children share with this process.
template <class T>
T* shared_memory() {
    void* at = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) _exit(9);
    return new (at) T;
}

/// Sends a descriptor; returns false if the socket refuses the message.
inline bool send_fd(int socket, int fd) {
    char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
    iovec io{&byte, 1};
    msghdr m{};
    m.msg_iov = &io, m.msg_iovlen = 1, m.msg_control = control, m.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(socket, &m, MSG_NOSIGNAL) == 1;
}
/// Receives a descriptor; returns -1 if none arrives.
inline int receive_fd(int socket) {
    char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
    iovec io{&byte, 1};
    msghdr m{};
    m.msg_iov = &io, m.msg_iovlen = 1, m.msg_control = control, m.msg_controllen = sizeof control;
    int fd = -1;
    if (recvmsg(socket, &m, 0) == 1 && CMSG_FIRSTHDR(&m) != nullptr)
        std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

}  // namespace lesson
