#pragma once
// Host memory that several processes map: a memfd, sealed so that no process can shrink it while others use
// it (access to a truncated mapping raises SIGBUS). Used for the rings and assets of a run on the CPU and for
// spaces (shared/ipc). Needs no device.
//
// Crash: the memory exists as long as a process holds the fd or maps it.

#include <string_view>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::shm {

struct sealed_memory {
    unique_fd fd;  ///< CLOEXEC
    u64 bytes = 0;
};
/// Creates `bytes` (rounded up to whole pages) of zeros; pages are allocated on first access. `name` appears
/// in /proc/PID/maps. Throws shm_error if `bytes` is 0, is more than 64 TiB, or is more than the free memory
/// of the machine or of its cgroup, or if memfd is not available.
[[nodiscard]] sealed_memory make_sealed_memory(std::string_view name, u64 bytes);

/// Returns the number of bytes that this process can still allocate: the smaller of MemAvailable and the rest
/// of its cgroup's limit; all ones if unknown.
[[nodiscard]] u64 available_host_bytes() noexcept;

}  // namespace carousel::shm
