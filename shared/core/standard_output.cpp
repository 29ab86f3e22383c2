#include "core/standard_output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "core/errors.hpp"

namespace carousel {

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
