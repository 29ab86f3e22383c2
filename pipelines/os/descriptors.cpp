#include "os/descriptors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace carousel::supervisor {
namespace {
/// One descriptor each for a report, the report's temporary file, a ledger, and the ledger's copy.
constexpr std::size_t reserved_descriptors = 4;
constexpr rlim_t ever_needed = 4096;  ///< the limit is not set higher, because stages inherit it and some
                                      ///< programs iterate over all possible descriptors
}  // namespace

void throw_system_error(const std::string& tried, int error_number, const std::string& text) {
    if (is_shortage(error_number)) throw out_of_resources(tried + ": " + text);
    throw shm_error(tried + ": " + text);
}

int retry_shortage(const std::function<int()>& attempt, u64 patience_ns) {
    const u64 until = now_ns() + patience_ns;
    for (;;) {
        const int failed = attempt();
        if (!is_shortage(failed) || now_ns() >= until) return failed;
        ::usleep(100'000);
    }
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
    if (is_shortage(why)) throw_system_error("opening /dev/null", why, no_file_text(why));
    throw shm_error(fmt::format(
        "cannot open /dev/null: {}; create it in this system or container (mknod -m 666 /dev/null c 1 3)",
        errno_text(why)));
}

void descriptor_reserve::fill() noexcept {
    while (kept_.size() < reserved_descriptors) {
        shm::unique_fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        if (!fd) return;
        kept_.push_back(std::move(fd));
    }
}

}  // namespace carousel::supervisor
