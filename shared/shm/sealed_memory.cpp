#include "shm/sealed_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "core/cgroup.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"

namespace carousel::shm {
namespace {

constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

u64 round_to_pages(u64 bytes) noexcept {
    const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

}  // namespace

u64 available_host_bytes() noexcept {
    u64 available = ~u64{0};
    try {
        const std::string text = read_file("/proc/meminfo").value_or("");
        constexpr std::string_view key = "MemAvailable:";
        if (const std::size_t at = text.find(key); at != std::string::npos)
            available = std::strtoull(text.c_str() + at + key.size(), nullptr, 10) * 1024;
        if (const auto group = cgroups::of().memory()) available = std::min(available, group->left());
    } catch (const std::exception&) {  // no memory for the strings: the value known so far is kept
    }
    return available;
}

sealed_memory make_sealed_memory(std::string_view name, u64 bytes) {
    if (bytes == 0 || bytes > (u64{1} << 46)) {
        throw shm_error(fmt::format(
            "shared memory '{}': {} bytes were requested; use a size of 1 byte to 64 TiB", name, bytes));
    }
    const u64 size = round_to_pages(bytes);
    const u64 free_bytes = available_host_bytes();
    if (size > free_bytes) {
        throw shm_error(fmt::format(
            "shared memory '{}': {:.1f} MiB were requested, but only {:.1f} MiB of memory are free; use a "
            "smaller size or window, or free memory",
            name, static_cast<double>(size) / 1048576.0, static_cast<double>(free_bytes) / 1048576.0));
    }
    const std::string label(name.substr(0, 200));
    unique_fd fd(::memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd) {
        const int why = errno;
        throw shm_error(
            fmt::format("shared memory '{}': memfd_create: {}", name,
                        why == ENOSYS ? errno_text(why) + "; use Linux 3.17 or newer" : no_file_text(why)));
    }
    const char* step = "ftruncate";
    int failed = ::ftruncate(fd.get(), static_cast<off_t>(size));
    if (failed == 0) {
        step = "sealing";
        failed = ::fcntl(fd.get(), F_ADD_SEALS, wanted_seals);
    }
    if (failed != 0) {
        const int reason = errno;
        throw shm_error(fmt::format("shared memory '{}': {} of {} bytes failed: {}", name, step, size,
                                    no_room_text(reason, "use a smaller size or free memory")));
    }
    return {std::move(fd), size};
}

}  // namespace carousel::shm
