#pragma once
// Sealed host memory (shm/sealed_memory.hpp) as the handle of a ring's or an asset's memory: the supervisor
// makes it and keeps the fd.
//
// Crash: the memory lives as long as somebody holds the fd or maps it.

#include <string_view>

#include "core/types.hpp"
#include "device/backend.hpp"
#include "shm/sealed_memory.hpp"

namespace carousel::device {

/// Makes `bytes` (rounded up to whole pages, zero-filled) of sealed memory. `name` shows in /proc/PID/maps.
/// The fd of the handle is CLOEXEC and belongs to the caller. Throws shm_error: 0 bytes, more than the
/// machine or its cgroup has free, no memfd.
[[nodiscard]] memory_handle create_memfd(std::string_view name, u64 bytes);

/// What a piece of host memory is a multiple of, and the addresses behind each: a row of a picture that is
/// written beyond the end still meets them. Addresses cost nothing.
inline constexpr u64 host_piece_step = 4096, host_gap_bytes = 64 * 1024;

enum class gaps : u8 { yes, no };  ///< behind the pieces of memory that is in pieces

/// Maps a memfd (shared, for reading or for both) and unmaps it in the destructor. data() == host_data().
/// Pieces are mapped one by one into a range of addresses that was reserved without access, so that a touch
/// of what lies between them is a SIGSEGV with SEGV_ACCERR.
class memfd_mapping final : public mapping {
public:
    /// Throws shm_error: not a memfd handle, the file is smaller than the handle says, or it isn't sealed
    /// against shrinking.
    explicit memfd_mapping(const memory_handle& handle, access wanted = access::write,
                           gaps requested = gaps::yes);
    ~memfd_mapping() override;

private:
    void map_whole(const memory_handle& handle, int may);
    void map_pieces(const memory_handle& handle, int may);
    u64 reserved_ = 0;  ///< addresses
};

using shm::available_host_bytes;

}  // namespace carousel::device
