#include "os/descriptors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

namespace carousel::supervisor {
namespace {
constexpr std::size_t kept_back = 4;  ///< a report, its temporary file, a ledger and its copy
constexpr rlim_t ever_needed = 4096;  ///< stages inherit it; some programs walk through all they could have
}  // namespace

bool is_shortage(int error_number) noexcept {
    return error_number == EMFILE || error_number == ENFILE || error_number == EAGAIN ||
           error_number == ENOMEM || error_number == ENOBUFS;
}

std::string shortage_text(int error_number) {
    rlimit files{};
    if (error_number != EMFILE || ::getrlimit(RLIMIT_NOFILE, &files) != 0) return errno_text(error_number);
    return fmt::format("{} (the limit of this process is {}): start it with a higher one (`ulimit -n 1024`)",
                       errno_text(error_number), files.rlim_cur);
}

void throw_system_error(const std::string& tried, int error_number) {
    if (is_shortage(error_number)) throw out_of_resources(tried + ": " + shortage_text(error_number));
    throw shm_error(tried + ": " + errno_text(error_number));
}

void raise_file_limit() noexcept {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= ever_needed) return;
    files.rlim_cur = std::min(files.rlim_max, ever_needed);
    ::setrlimit(RLIMIT_NOFILE, &files);
}

shm::unique_fd open_null(int flags) {
    shm::unique_fd fd(::open("/dev/null", flags | O_CLOEXEC));
    if (fd) return fd;
    const int why = errno;
    if (is_shortage(why)) throw_system_error("opening /dev/null", why);
    throw shm_error(
        fmt::format("opening /dev/null: {}; this system or container has to provide it (mknod -m 666 "
                    "/dev/null c 1 3)",
                    errno_text(why)));
}

void descriptor_reserve::fill() noexcept {
    while (kept_.size() < kept_back) {
        shm::unique_fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        if (!fd) return;
        kept_.push_back(std::move(fd));
    }
}

}  // namespace carousel::supervisor
