#pragma once
// Computes how many bytes a frame moves. The functions are pure functions of counts and use no device.
//
// ring_bytes: the bytes that cross the rings of the pipeline per frame, each counted once. These bytes are
// the picture and the filled part of the planes of "carousel.triangles" (triangle_layout.hpp); the filled
// part of the plane "list" has only the triangles that survived culling. floor_bytes: the least number of
// bytes that any implementation with these formats must move through memory. Each input is read once, each
// output is written once, and everything in between (visibility buffer, second reads, attributes of the
// resolve) stays in caches:
//   vertex stage    reads the bounds of all clusters (48 C) and, for listed triangles, positions and corners;
//                   writes the triangles' planes
//   fragment stage  reads the triangles' planes and, for listed triangles, positions and indices; writes the
//                   picture (4 W H)
// For a mesh of V vertices and T triangles (read once for all instances), L listed triangles have 12 V min(1,
// L / T) bytes of positions, 4 L of corners and 12 L of indices. (These numbers are only estimates: the
// listed triangles may share more or fewer vertices than the triangles of the whole mesh.) floor_ms =
// floor_bytes / bandwidth, where bandwidth is that of a large copy on the device: (read + written bytes) /
// time. A scene that fits in caches can be faster than this "floor".

#include <algorithm>
#include <string_view>

#include "kernels/triangle_layout.hpp"

namespace carousel::bench {

struct frame_bytes {
    u64 ring = 0, floor = 0;
};

[[nodiscard]] inline u64 bytes_of(const kernels::plane_spec& plane) {
    u64 n = plane.type == kernels::scalar::u8_ ? 1 : 4;
    for (const u64 side : plane.shape) n *= side;
    return n;
}

[[nodiscard]] inline frame_bytes bytes_of_frame(const kernels::mesh_counts& mesh, u32 instances, u64 listed,
                                                u32 width, u32 height) {
    u64 triangles = 0;
    for (const kernels::plane_spec& plane : kernels::triangle_planes(mesh, instances))
        triangles +=
            std::string_view(plane.name) == "list" ? std::min(listed * 4, bytes_of(plane)) : bytes_of(plane);
    const u64 picture = bytes_of(kernels::image_planes(width, height)[0]);
    const u64 seen = std::min<u64>(listed, mesh.triangle_count),
              vertices = mesh.vertex_count * seen / std::max(1U, mesh.triangle_count);
    const u64 read = u64{kernels::cluster_count(mesh)} * sizeof(kernels::cluster_bounds) + 2 * vertices * 12 +
                     seen * 4 + seen * 12;
    return {triangles + picture, read + 2 * triangles + picture};
}

}  // namespace carousel::bench
