#include "core/errors.hpp"

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace carousel {

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

void assertion_failed(const char* expression, const char* file, int line) noexcept {
    std::fprintf(stderr, "assertion failed: %s (%s:%d): this is a bug in Carousel or in a stage\n",
                 expression, file, line);
    std::fflush(stderr);
    std::abort();
}

}  // namespace carousel
