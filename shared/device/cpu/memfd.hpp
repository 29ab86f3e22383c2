#pragma once
// Sealed host memory (shm/sealed_memory.hpp) used as the memory of a ring or an asset: the supervisor creates
// it and keeps the fd.
//
// Crash: the memory exists as long as any process holds the fd or maps the memory.

#include <string_view>

#include "core/types.hpp"
#include "device/backend.hpp"
#include "shm/sealed_memory.hpp"

namespace carousel::device {

/// Creates `bytes` (rounded up to whole pages, zero-filled) of sealed memory. `name` appears in
/// /proc/PID/maps. The handle's fd is CLOEXEC and belongs to the caller. Throws shm_error if `bytes` is 0 or
/// exceeds the free memory of the machine or of the cgroup, or if memfd is not available.
[[nodiscard]] memory_handle create_memfd(std::string_view name, u64 bytes);

/// The size of a piece of host memory is a multiple of host_piece_step. host_gap_bytes is the size of the gap
/// after each piece. The gap is so large that a picture row that begins in the slot and is written out of
/// bounds still ends in the gap. Reserved addresses use no memory.
inline constexpr u64 host_piece_step = 4096, host_gap_bytes = 64 * 1024;

enum class gaps : u8 { yes, no };  ///< whether a gap is mapped after each piece

/// Maps a memfd (shared; for reading, or for reading and writing) and unmaps it in the destructor. data() ==
/// host_data(). Pieces are mapped one by one into a range of addresses that is reserved without access, so
/// that an access between two pieces raises SIGSEGV with SEGV_ACCERR.
class memfd_mapping final : public mapping {
public:
    /// Throws shm_error if the handle is not a memfd, if the file is smaller than the handle's size, or if it
    /// is not sealed against shrinking.
    explicit memfd_mapping(const memory_handle& handle, access wanted = access::write,
                           gaps requested = gaps::yes);
    ~memfd_mapping() override;

private:
    void map_whole(const memory_handle& handle, int may);
    void map_pieces(const memory_handle& handle, int may);
    u64 reserved_ = 0;  ///< size of the reserved address range
};

using shm::available_host_bytes;

}  // namespace carousel::device
