#pragma once
// A plane as far as a frame uses it: at most as large as its format says, in the same place and with the same
// distances. Point clouds, detections and compressed data fill a part of their planes.
//
// The extents lie in the frame's header (shm/frame_header.hpp): set by the producer before SUBMITTED, clamped
// by every reader, since another process has written them.

#include <span>

#include "ring/frame_format.hpp"
#include "shm/frame_header.hpp"

namespace carousel::ring {

static_assert(max_rank == shm::max_plane_rank);

/// Is plane `index` used in part?
[[nodiscard]] inline bool is_used_in_part(const shm::used_extents& used, std::size_t index) noexcept {
    return index < shm::max_used_planes && (used.planes >> index & 1U) != 0;
}
/// Elements in use along dimension `d` of a plane.
[[nodiscard]] u64 used_extent(const plane& p, std::size_t index, u32 d,
                              const shm::used_extents& used) noexcept;
/// The plane with the extents in use as its shape, and its strides spelled out. bytes() is from its first
/// element in use to behind its last; 0: none is.
[[nodiscard]] plane used_plane(const frame_format& f, std::size_t index, const shm::used_extents& used);
/// Sets the first extents of a plane; the others are used as declared. Throws config_error: no such plane,
/// more extents than it has, larger ones than it has, or a plane behind the eighth.
void set_used(shm::used_extents& used, const frame_format& f, std::string_view plane,
              std::span<const u64> extents);
/// "points 120 x 3 of 4096 x 3", of all planes that are used in part; "": there are none.
[[nodiscard]] std::string describe_used(const frame_format& f, const shm::used_extents& used);

}  // namespace carousel::ring
