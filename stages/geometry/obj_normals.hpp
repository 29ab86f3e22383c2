#pragma once
// Normals for OBJ corners that have no normal in the file. Internal to the OBJ reader.

#include <span>
#include <vector>

#include "stages/geometry/polygon.hpp"

namespace carousel::stages {

/// How the triangles around a point are smoothed.
struct smoothing {
    bool by_group = false;   ///< true if the file has `s` statements; otherwise smoothing depends on the
                             ///< angle between triangles
    std::vector<u32> group;  ///< group of each triangle; 0: flat
};

/// Returns for each corner (three per triangle, `point_of_corner` an index of `points`) the sum of the cross
/// products of its own triangle and of the triangles around its point that are smoothed with it, because they
/// are in the same group or there are at most 60 degrees between the two planes. The lengths weight by area.
/// Not of unit length.
[[nodiscard]] std::vector<point3> corner_normals(std::span<const point3> points,
                                                 std::span<const u32> point_of_corner, const smoothing& how);

}  // namespace carousel::stages
