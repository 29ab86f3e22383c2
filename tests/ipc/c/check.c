#define _GNU_SOURCE
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct process start(const char* const* argv) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t parent = getpid(), pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(127);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(argv[0], (char* const*)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[1]);
    return (struct process){pid, ends[0]};
}

void wait_for_output(struct process p) {
    struct pollfd readable = {p.output, POLLIN, 0};
    char byte;
    CHECK(poll(&readable, 1, 20000) == 1);
    CHECK(read(p.output, &byte, 1) == 1);
}

void kill_process(struct process p) {
    kill(p.pid, SIGKILL);
    CHECK(waitpid(p.pid, NULL, 0) == p.pid);
    close(p.output);
}

int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}
