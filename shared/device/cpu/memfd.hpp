#pragma once
// Host memory that several processes map: a memfd, sealed so that nobody can shrink it under the others (a
// truncated mapping is a SIGBUS in whoever touches it). Needs no device: the supervisor makes it and keeps
// the fd.
//
// Crash: the memory lives as long as somebody holds the fd or maps it.

#include <string_view>

#include "core/types.hpp"
#include "device/backend.hpp"

namespace carousel::device {

/// Makes `bytes` (rounded up to whole pages, zero-filled) of sealed memory. `name` shows in /proc/PID/maps.
/// The fd of the handle is CLOEXEC and belongs to the caller. Throws shm_error: 0 bytes, more than the
/// machine or its cgroup has free, no memfd.
[[nodiscard]] memory_handle create_memfd(std::string_view name, u64 bytes);

/// Maps a memfd (shared, read and write) and unmaps it in the destructor. data() == host_data().
class memfd_mapping final : public mapping {
public:
    /// Throws shm_error: not a memfd handle, the file is smaller than the handle says, or it isn't sealed
    /// against shrinking.
    explicit memfd_mapping(const memory_handle& handle);
    ~memfd_mapping() override;
};

/// Bytes that this process could still take: the least of MemAvailable and what its cgroup leaves; all ones
/// when unknown.
[[nodiscard]] u64 available_host_bytes() noexcept;

}  // namespace carousel::device
