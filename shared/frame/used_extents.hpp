#pragma once
// The part of a plane that a frame uses: at most as large as its format states, at the same offset and with
// the same strides. Point clouds, detections and compressed data fill a part of their planes.
//
// The extents are in the frame's header (shm/frame_header.hpp): set by the producer before SUBMITTED, clamped
// by every reader, since another process has written them.

#include <span>

#include "frame/frame_format.hpp"
#include "shm/frame_header.hpp"

namespace carousel::ring {

static_assert(max_rank == shm::max_plane_rank);

/// Returns true if plane `index` is used in part.
[[nodiscard]] inline bool is_used_in_part(const shm::used_extents& used, std::size_t index) noexcept {
    return index < shm::max_used_planes && (used.planes >> index & 1U) != 0;
}
/// Elements in use along dimension `d` of a plane.
[[nodiscard]] u64 used_extent(const plane& p, std::size_t index, u32 d,
                              const shm::used_extents& used) noexcept;
/// The plane with the extents in use as its shape, and its strides spelled out. bytes() is from its first
/// element in use to the end of its last; 0 if none is in use.
[[nodiscard]] plane used_plane(const frame_format& f, std::size_t index, const shm::used_extents& used);
/// Sets the leading extents of a plane; the others are used as declared. Throws config_error: no such plane,
/// more extents than the plane has, larger ones than it has, or a plane after the eighth.
void set_used(shm::used_extents& used, const frame_format& f, std::string_view plane,
              std::span<const u64> extents);
/// "points 120 x 3 of 4096 x 3", for all planes that are used in part; "" if there are none.
[[nodiscard]] std::string describe_used(const frame_format& f, const shm::used_extents& used);

}  // namespace carousel::ring
