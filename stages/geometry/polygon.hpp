#pragma once
// Converts polygons to triangles by ear clipping, without filling the concave parts of a polygon.

#include <array>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

using point3 = std::array<f64, 3>;

/// Limit of comparisons for all polygons of a file, about one second; no real mesh needs as many, but a
/// malicious file could.
inline constexpr u64 polygon_budget = 400'000'000;

/// Appends the polygon's triangles to `out` as indices of its corners, with the polygon's orientation; the
/// corners need not lie exactly in one plane. A convex polygon of four corners is cut along its shorter
/// diagonal. Subtracts the cost from `budget`; returns false when the budget is used up.
[[nodiscard]] bool triangulate(std::span<const point3> corners, u64& budget, std::vector<u32>& out);

}  // namespace carousel::stages
