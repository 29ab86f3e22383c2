#include "shm/sealed_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "core/errors.hpp"

namespace carousel::shm {
namespace {

constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// The first number of a small file under /proc or /sys behind `key` ("" for the file's start); all ones when
/// there is none.
u64 number_in(const char* path, const char* key) noexcept {
    std::FILE* file = std::fopen(path, "re");
    if (file == nullptr) return ~u64{0};
    char line[160];
    u64 value = ~u64{0};
    const std::string_view wanted = key;
    while (std::fgets(line, sizeof line, file) != nullptr) {
        if (std::string_view(line).substr(0, wanted.size()) != wanted) continue;
        unsigned long long read = 0;
        if (std::sscanf(line + wanted.size(), "%llu", &read) == 1) value = read;
        break;
    }
    std::fclose(file);
    return value;
}

u64 round_to_pages(u64 bytes) noexcept {
    const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

}  // namespace

u64 available_host_bytes() noexcept {
    const u64 kib = number_in("/proc/meminfo", "MemAvailable:");
    u64 available = kib == ~u64{0} ? kib : kib * 1024;
    const u64 limit = number_in("/sys/fs/cgroup/memory.max", "");  // "max" is no number: no limit
    const u64 used = number_in("/sys/fs/cgroup/memory.current", "");
    if (limit != ~u64{0} && used != ~u64{0}) {
        // Page cache counts as used but gives way, so what the cgroup calls inactive files is free as well.
        const u64 cache = number_in("/sys/fs/cgroup/memory.stat", "inactive_file ");
        const u64 held = cache == ~u64{0} ? used : used - std::min(used, cache);
        available = std::min(available, limit - std::min(limit, held));
    }
    return available;
}

sealed_memory make_sealed_memory(std::string_view name, u64 bytes) {
    if (bytes == 0 || bytes > (u64{1} << 46)) {
        throw shm_error(fmt::format(
            "shared memory '{}': {} bytes were asked for; give a size of 1 byte to 64 TiB", name, bytes));
    }
    const u64 size = round_to_pages(bytes);
    const u64 free_bytes = available_host_bytes();
    if (size > free_bytes) {
        throw shm_error(fmt::format(
            "shared memory '{}': {:.1f} MiB asked for, {:.1f} MiB of memory free; use a smaller size or "
            "window, or free memory",
            name, static_cast<double>(size) / 1048576.0, static_cast<double>(free_bytes) / 1048576.0));
    }
    const std::string label(name.substr(0, 200));
    unique_fd fd(::memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd) {
        throw shm_error(fmt::format(
            "shared memory '{}': memfd_create failed: {}; Linux 3.17 or newer is needed, and a limit of "
            "open files (ulimit -n) that leaves room",
            name, errno_text(errno)));
    }
    const char* step = "ftruncate";
    int failed = ::ftruncate(fd.get(), static_cast<off_t>(size));
    if (failed == 0) {
        step = "sealing";
        failed = ::fcntl(fd.get(), F_ADD_SEALS, wanted_seals);
    }
    if (failed != 0) {
        const int reason = errno;
        throw shm_error(
            fmt::format("shared memory '{}': {} of {} bytes failed: {}; use a smaller size or free memory",
                        name, step, size, errno_text(reason)));
    }
    return {std::move(fd), size};
}

}  // namespace carousel::shm
