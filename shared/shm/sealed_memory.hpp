#pragma once
// Host memory that several processes map: a memfd, sealed so that nobody can shrink it under the others (a
// truncated mapping is a SIGBUS in whoever touches it). The rings and assets of a run on the CPU are made of
// it, and spaces (shared/ipc). Needs no device.
//
// Crash: the memory lives as long as somebody holds the fd or maps it.

#include <string_view>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::shm {

struct sealed_memory {
    unique_fd fd;  ///< CLOEXEC
    u64 bytes = 0;
};
/// `bytes` (rounded up to whole pages) of zeros; its pages come when they are touched. `name` shows in
/// /proc/PID/maps. Throws shm_error: 0 bytes, more than the machine or its cgroup has free, no memfd.
[[nodiscard]] sealed_memory make_sealed_memory(std::string_view name, u64 bytes);

/// Bytes that this process could still take: the least of MemAvailable and what its cgroup leaves; all ones
/// when unknown.
[[nodiscard]] u64 available_host_bytes() noexcept;

}  // namespace carousel::shm
