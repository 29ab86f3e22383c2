#include "core/memory_limit.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include "core/errors.hpp"

namespace carousel {

std::string no_memory_text(int error_number) {
    rlimit space{};
    if (::getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY)
        return errno_text(error_number);
    return fmt::format("{}; each process may have {:.1f} MiB of address space (ulimit -v): raise that limit",
                       errno_text(error_number), static_cast<double>(space.rlim_cur) / 1048576.0);
}

}  // namespace carousel
