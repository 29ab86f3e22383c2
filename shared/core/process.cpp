#include "core/process.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "core/errors.hpp"
#include "core/resource_limit.hpp"

namespace carousel {
namespace {

/// The kernel reads the limit whenever the main thread's stack grows, so a raised limit takes effect
/// immediately. For the stacks of other threads, glibc has already read the limit before main().
void raise_stack_limit() {
    rlimit stack{};
    if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= wanted_stack) return;
    const rlimit found = stack;
    stack.rlim_cur = wanted_stack;
    stack.rlim_max = std::max<rlim_t>(found.rlim_max, wanted_stack);  // root may also raise the hard limit
    if (::setrlimit(RLIMIT_STACK, &stack) == 0) return;
    const int why = errno;
    stack = {found.rlim_max, found.rlim_max};
    if (found.rlim_max >= least_stack && ::setrlimit(RLIMIT_STACK, &stack) == 0) return;
    throw out_of_resources(
        fmt::format("raising the limit of the stack from {} KiB (hard limit {} KiB) to {} KiB: {}; start "
                    "this program with a higher limit (`ulimit -s 8192`)",
                    found.rlim_cur / 1024, found.rlim_max / 1024, least_stack / 1024, errno_text(why)));
}

void raise_thread_stacks() noexcept {
    pthread_attr_t threads;
    std::size_t bytes = 0;
    if (::pthread_getattr_default_np(&threads) != 0) return;
    if (::pthread_attr_getstacksize(&threads, &bytes) == 0 && bytes < wanted_stack &&
        ::pthread_attr_setstacksize(&threads, wanted_stack) == 0)
        ::pthread_setattr_default_np(&threads);
    ::pthread_attr_destroy(&threads);
}

}  // namespace

void prepare_process_limits() {
    std::signal(SIGXFSZ, SIG_IGN);
    raise_stack_limit();
    raise_thread_stacks();
}

int after_output(int code) noexcept {
    errno = 0;
    std::cout.flush();
    const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
    if (code != exit_code::ok || !failed || errno == EPIPE) return code;
    std::fprintf(stderr, "error: writing to stdout: %s\n",
                 errno != 0 ? std::strerror(errno) : "the output is incomplete");
    return exit_code::output;
}

}  // namespace carousel
