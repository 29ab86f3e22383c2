/* Checks of the C tests, and the processes that they start. A failed check prints its line and ends the program
 * with 1, which also ends the processes (PR_SET_PDEATHSIG). */
#ifndef CAROUSEL_TESTS_IPC_C_CHECK_H
#define CAROUSEL_TESTS_IPC_C_CHECK_H

#include <carousel/space.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define CHECK(condition)                                                                                      \
    do {                                                                                                      \
        if (!(condition)) {                                                                                   \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition,                    \
                    carousel_last_error());                                                                   \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)

/* Checks the status of a call. */
#define STATUS(expected, call)                                                                                \
    do {                                                                                                      \
        const carousel_status status_ = (call);                                                               \
        if (status_ != (expected)) {                                                                          \
            fprintf(stderr, "%s:%d: %s: %s instead of %s: %s\n", __FILE__, __LINE__, #call,                   \
                    carousel_status_name(status_), carousel_status_name(expected), carousel_last_error());    \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)
#define OK(call) STATUS(CAROUSEL_OK, call)

#define SECOND INT64_C(1000000000)
#define LONG (20 * SECOND)

/* A started process and the read end of its standard output. */
struct process {
    pid_t pid;
    int output;
};
/* Starts a program that ends with this one. */
struct process start(const char* const* argv);
/* Waits for a byte of its output; fails the test after 20 s. */
void wait_for_output(struct process p);
/* Kills it and waits for its end. */
void kill_process(struct process p);
/* Nanoseconds of CLOCK_MONOTONIC. */
int64_t now_ns(void);

#endif
