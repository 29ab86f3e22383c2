#include "core/resource_limit.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <optional>

#include "core/cgroup.hpp"

namespace carousel {
namespace {

constexpr u64 nearly_reached = 2;  ///< the refused process may be one of several that are created at the same
                                   ///< time

std::optional<rlim_t> soft_limit(int of) noexcept {
    rlimit found{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(of), &found) != 0 || found.rlim_cur == RLIM_INFINITY)
        return std::nullopt;
    return found.rlim_cur;
}

}  // namespace

bool is_shortage(int error_number) noexcept {
    return error_number == EMFILE || error_number == ENFILE || error_number == EAGAIN ||
           error_number == ENOMEM || error_number == ENOBUFS;
}

std::string no_memory_text(int error_number) {
    const std::string limit = address_space_text();
    return errno_text(error_number) + (limit.empty() ? "" : "; " + limit);
}

std::string no_thread_text(int error_number) {
    const std::string cause = errno_text(error_number);
    if (error_number == EMFILE || error_number == ENFILE) return no_file_text(error_number);
    if (error_number != EAGAIN) return error_number == ENOMEM ? no_memory_text(error_number) : cause;
    if (const auto pids = cgroups::of().pids(); pids && pids->left() <= nearly_reached)
        return fmt::format("{}; {} of {} processes and threads of the control group are in use: raise {}",
                           cause, pids->used, pids->limit, pids->file);
    if (soft_limit(RLIMIT_AS)) return no_memory_text(error_number);
    if (const auto own = soft_limit(RLIMIT_NPROC))
        return fmt::format("{}; this user may have {} processes and threads (ulimit -u): raise that limit",
                           cause, *own);
    return cause + "; the machine has no process or thread left (kernel.threads-max, kernel.pid_max)";
}

std::string no_file_text(int error_number) {
    const std::optional<rlim_t> files = soft_limit(RLIMIT_NOFILE);
    if (error_number != EMFILE || !files) return errno_text(error_number);
    return fmt::format(
        "{} (the limit of this process is {}): start the program with a higher limit (`ulimit -n 1024`)",
        errno_text(error_number), *files);
}

std::string no_room_text(int error_number, const std::string& otherwise) {
    const std::string cause = errno_text(error_number);
    switch (error_number) {
        case ENOSPC:
            return cause + "; free some space on that disk";
        case EDQUOT:
            return cause + "; this user's quota of that disk is used up: raise it or free some space";
        case EFBIG:
            if (const auto size = soft_limit(RLIMIT_FSIZE))
                return fmt::format("{}; a file may have {} bytes (ulimit -f): raise that limit", cause,
                                   *size);
            return cause + "; the file system supports no larger file";
        default:
            return otherwise.empty() ? cause : fmt::format("{}; {}", cause, otherwise);
    }
}

std::string no_shared_room_text(int error_number) {
    if (error_number == ENOSPC)
        return errno_text(error_number) +
               "; `carousel clean` removes files of dead runs in /dev/shm; or enlarge it (containers: "
               "--shm-size)";
    return no_room_text(error_number, "check that /dev/shm is mounted and writable (`carousel doctor`)");
}

}  // namespace carousel
