#include "core/memory_limit.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include "core/errors.hpp"

namespace carousel {
namespace {

bool space_is_limited(rlimit& space) noexcept {
    return ::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
}

}  // namespace

std::string no_memory_text(int error_number) {
    rlimit space{};
    if (!space_is_limited(space)) return errno_text(error_number);
    return fmt::format("{}; each process may have {:.1f} MiB of address space (ulimit -v): raise that limit",
                       errno_text(error_number), static_cast<double>(space.rlim_cur) / 1048576.0);
}

std::string no_thread_text(int error_number) {
    rlimit space{};
    if (space_is_limited(space)) return no_memory_text(error_number);
    return fmt::format("{}; raise the limit of processes (ulimit -u)", errno_text(error_number));
}

}  // namespace carousel
