#pragma once
// Parts of the OBJ reader: it reads material libraries, computes normals that a file lacks, and converts
// polygons to triangles.

#include <tiny_obj_loader.h>

#include <array>
#include <filesystem>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "stages/assets/scene_asset.hpp"

namespace carousel::stages {

// Converts polygons to triangles by ear clipping, without filling the concave parts of a polygon.

using point3 = std::array<f64, 3>;

/// Limit of the number of comparisons for all polygons of a file; this number of comparisons takes about one
/// second. No real mesh reaches the limit, but a malicious file could.
inline constexpr u64 polygon_budget = 400'000'000;

/// Appends the polygon's triangles to `out` as indices of its corners, with the polygon's orientation; the
/// corners need not lie exactly in one plane. A convex polygon of four corners is cut along its shorter
/// diagonal. Subtracts the cost from `budget`; returns false when the budget is used up.
[[nodiscard]] bool triangulate(std::span<const point3> corners, u64& budget, std::vector<u32>& out);

// Material libraries (.mtl) of OBJ files. Internal to the OBJ reader.

/// Reads the library that `mtllib` names, from `folder`. A material without Kd gets 1 1 1, so that a picture
/// (map_Kd) keeps its colours.
class obj_material_reader : public tinyobj::MaterialReader {
public:
    explicit obj_material_reader(std::filesystem::path folder) : folder_(std::move(folder)) {}
    bool operator()(const std::string& name, std::vector<tinyobj::material_t>* materials,
                    std::map<std::string, int>* numbers, std::string* warning, std::string* problem) override;

private:
    std::filesystem::path folder_;
};

/// Adds a material with its textures and images, and returns its number. Kd is in sRGB; a black Kd together
/// with map_Kd means that the exporter has omitted the colour. Without the keys Pr and Pm, the roughness
/// follows from the exponent Ns, and the material is not metallic.
[[nodiscard]] u32 add_material(scene_asset& asset, const tinyobj::material_t& m,
                               const std::filesystem::path& folder);

/// Stores the direction of `n` as a unit vector of floats; +y if `n` has no direction.
void store_unit(const f64 (&n)[3], f32 (&to)[3]);

// Normals for corners that have no normal in the file. For the readers of OBJ and PLY.

/// How the triangles around a point are smoothed.
struct smoothing {
    bool by_group = false;   ///< true if the file has `s` statements; if it has none, smoothing depends on
                             ///< the angle between triangles
    std::vector<u32> group;  ///< for each triangle its smoothing group; 0: the triangle is flat
};

/// Returns a normal, not of unit length, for each corner (three per triangle; `point_of_corner` contains
/// indices of `points`). The normal is the sum of the cross products of the corner's own triangle and of
/// the triangles around the corner's point that are smoothed with this triangle. Two triangles are
/// smoothed together if they are in the same group or, in a file without `s` statements, if the angle
/// between their planes is at most 60 degrees. The lengths of the cross products weight the triangles by
/// area.
[[nodiscard]] std::vector<point3> corner_normals(std::span<const point3> points,
                                                 std::span<const u32> point_of_corner, const smoothing& how);

}  // namespace carousel::stages
