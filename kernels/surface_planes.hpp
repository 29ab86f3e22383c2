#pragma once
// The G-buffer, as plain arrays: fragment -> light ("carousel.surface"), shadow -> light ("carousel.shadow").

#include <vector>

#include "kernels/triangle_layout.hpp"

namespace carousel::kernels {

inline constexpr const char* surface_format = "carousel.surface";
inline constexpr const char* shadow_format = "carousel.shadow";
inline constexpr const char* radiance_format = "carousel.image.linear";

/// Planes: 0 `albedo` u8[h][w][4] (base colour, sRGB, and the part of the sky's light that the material's
/// occlusion map leaves, 255 for all; 0 where there is no surface), 1 `normal` u32[h][w] (octahedral, 16 bits
/// per coordinate; unlit_normal: the surface shows its emission alone), 2 `material` u8[h][w][4] (roughness,
/// metallic, clearcoat, each 255 for 1; emission as a factor of the base colour, in units of 1/16), 3 `depth`
/// f32[h][w] (1 / view depth; 0 where there is no surface). For a mesh with materials of its own also 4
/// `emission` u32[h][w] (linear, red, green and blue of 9 bits with a common exponent of 5 bits, red lowest).
/// If the mesh has transparent triangles, also 5 `layers` u32[h][w][1 to 4][5]: those that precede the
/// surface, nearest first, each as depth (f32; 0: no layer, nor after it), albedo, normal, material (with the
/// opacity, 255 for 1, instead of emission) and emission. Farther ones than these are not shown.
/// With four samples per pixel (body/samples.hpp) also `coverage` u8[h][w], which of the pixel's surfaces
/// each sample shows: 2 bits per sample, the first sample lowest, so that 0 means one surface; and `samples`
/// u32[h][w][3][5], the second to fourth surface, each as depth, albedo, normal, material and emission. Those
/// that `coverage` does not name are not written; the first surface is in the planes 0 to 4. Transparent
/// layers are those at the pixel's centre; each covers the surfaces that are farther away.
/// If motion is asked for, also `triangle` u32[h][w]: the id of the triangle that the planes 0 to 4 show, as
/// in the list of triangles; no_triangle for the floor, or if there is no surface.
[[nodiscard]] inline std::vector<plane_spec> surface_plane_specs(u32 width, u32 height,
                                                                 bool has_materials = false) {
    std::vector<plane_spec> planes = {{"albedo", scalar::u8_, {height, width, 4}},
                                      {"normal", scalar::u32_, {height, width}},
                                      {"material", scalar::u8_, {height, width, 4}},
                                      {"depth", scalar::f32_, {height, width}}};
    if (has_materials) planes.push_back({"emission", scalar::u32_, {height, width}});
    return planes;
}
inline constexpr u32 max_layers = 4, layer_words = 5;
inline constexpr u32 further_surfaces = 3;  ///< per pixel with four samples
inline constexpr u32 unlit_normal = ~0U;    ///< no octahedral coordinate is 65535
inline constexpr u32 no_triangle = ~0U;

/// The planes as pointers. If `albedo` is null, only `depth` is written, as for a shadow map.
struct surface_planes {
    u32* albedo = nullptr;
    u32* normal = nullptr;
    u32* material = nullptr;
    f32* depth = nullptr;
    u32* emission = nullptr;  ///< null if the mesh has no materials of its own
    u32* layers = nullptr;    ///< null if nothing transparent is shown
    u32 layer_count = 0;      ///< per pixel, at most max_layers
    // null with one sample per pixel
    u8* coverage = nullptr;
    u32* samples = nullptr;
    u32* triangle = nullptr;  ///< null unless motion is asked for
};

/// A material that is the same for the whole of an instance; its tint multiplies the texture.
struct instance_material {
    f32 tint[3] = {1.0F, 1.0F, 1.0F};  ///< linear
    f32 roughness = 0.5F, metallic = 0.0F, clearcoat = 0.0F, emission = 0.0F;
    u32 textured = 1;  ///< 0: the tint alone is the base colour
};
inline constexpr u32 max_instance_materials = 8;

/// What the G-buffer contains in addition to the triangles.
struct surface_look {
    /// for meshes without materials of their own
    instance_material materials[max_instance_materials];
    u32 material_count = 1;  ///< instance i has material i modulo this number
    u32 has_floor = 0;       ///< 1: an infinite horizontal plane at the height `floor`
    f32 floor = -1.0F;
    instance_material floor_material;
};

}  // namespace carousel::kernels
