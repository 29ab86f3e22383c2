#pragma once
// Polygons as triangles, by ear clipping: what a concave one leaves open stays open.

#include <array>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

using point3 = std::array<f64, 3>;

/// Comparisons that a file's polygons may cost together, about a second: nobody's mesh needs them, but a file
/// may be made to.
inline constexpr u64 polygon_budget = 400'000'000;

/// The polygon's triangles as numbers of its corners, turning as the polygon does; its corners need not lie
/// in one plane quite. A convex one of four corners is cut along its shorter diagonal. Appends to `out` and
/// takes what it cost from `budget`; false when that is used up.
[[nodiscard]] bool triangulate(std::span<const point3> corners, u64& budget, std::vector<u32>& out);

}  // namespace carousel::stages
