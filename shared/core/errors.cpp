#include "core/errors.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>

#include "core/resource_limit.hpp"

namespace carousel {

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

void assertion_failed(const char* expression, const char* file, int line) noexcept {
    std::fprintf(stderr, "assertion failed: %s (%s:%d): this is a bug in Carousel or in a stage\n",
                 expression, file, line);
    std::fflush(stderr);
    std::abort();
}

std::string address_space_text() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
    return fmt::format("each process may have {:.1f} MiB of address space (ulimit -v): raise that limit",
                       static_cast<double>(limit.rlim_cur) / 1048576.0);
}

std::string unexpected_text(const std::exception& e) {
    if (dynamic_cast<const std::system_error*>(&e) != nullptr)  // includes std::filesystem::filesystem_error
        return std::string(e.what()) + ": refused by the operating system";
    if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) {
        const std::string limit = address_space_text();
        return limit.empty()
                   ? "out of memory: end other programs, or raise the limit of this process's cgroup"
                   : "out of memory; " + limit;
    }
    return std::string(e.what()) + ": this is a bug in Carousel";
}

}  // namespace carousel
