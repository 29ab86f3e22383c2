#pragma once
// The part of a plane that a frame uses: at most as large as the declared plane, at the same offset and with
// the same strides. Point clouds, detections and compressed data fill a part of their planes.
//
// The extents are in the frame's header (shm/frame_header.hpp): set by the producer before SUBMITTED, and
// clamped by every reader, because another process has written them.

#include <span>

#include "frame/frame_format.hpp"
#include "shm/frame_header.hpp"

namespace carousel::ring {

static_assert(max_rank == shm::max_plane_rank);

/// Returns true if plane `index` is used in part.
[[nodiscard]] inline bool is_used_in_part(const shm::used_extents& used, std::size_t index) noexcept {
    return index < shm::max_used_planes && (used.planes >> index & 1U) != 0;
}
/// Returns the number of elements in use along dimension `d` of a plane.
[[nodiscard]] u64 used_extent(const plane& p, std::size_t index, u32 d,
                              const shm::used_extents& used) noexcept;
/// Returns the plane with the extents in use as its shape, and with explicit strides. Its bytes() are counted
/// from the first element in use to the end of the last; 0 if none is in use.
[[nodiscard]] plane used_plane(const frame_format& f, std::size_t index, const shm::used_extents& used);
/// Sets the leading extents of a plane; the others are used as declared. Throws config_error if there is no
/// such plane, if there are more or larger extents than those of the plane, or for a plane after the eighth.
void set_used(shm::used_extents& used, const frame_format& f, std::string_view plane,
              std::span<const u64> extents);
/// Returns "points 120 x 3 of 4096 x 3", for all planes that are used in part; "" if there are none.
[[nodiscard]] std::string describe_used(const frame_format& f, const shm::used_extents& used);

}  // namespace carousel::ring
