#pragma once
// Materials of a mesh file as the kernels read them for a G-buffer, in addition to base colours. Part of the
// mesh's block (mesh_layout.hpp).

#include "core/types.hpp"

namespace carousel::kernels {

inline constexpr u32 no_map = ~0U;

/// One texture of a material: which one, and how it is sampled.
struct map_slot {
    u32 map =
        no_map;    ///< number of the map; the base colour has the texture of the material's number instead
    u32 mode = 0;  ///< the bits below
    f32 transform[6] = {1.0F, 0.0F, 0.0F, 0.0F, 1.0F, 0.0F};  ///< row-major 2 x 3, of texture coordinates
};
static_assert(sizeof(map_slot) == 32);
// Bits of map_slot::mode. Bits 0 and 1: what follows beyond the border in u; bits 2 and 3: in v.
inline constexpr u32 map_repeat = 0, map_clamp = 1, map_mirror = 2;
inline constexpr u32 map_nearest = 1U << 4;     ///< magnified without interpolation
inline constexpr u32 map_channel_shift = 5;     ///< bits 5 and 6: 0 red to 3 alpha
inline constexpr u32 map_second_set = 1U << 7;  ///< uses the second pair of vertex_detail::texture

enum material_flag : u32 {
    material_unlit = 1,
    material_masked = 2,   ///< drawn where the opacity is at least `cutoff`
    material_blended = 4,  ///< covers what is farther away in proportion to its opacity
};

/// A metallic-roughness material. Colours are linear. A map multiplies its factor.
struct material_record {
    f32 opacity = 1.0F;  ///< multiplies the alpha of the base colour's texture
    f32 cutoff = 0.5F;
    f32 roughness = 1.0F, metallic = 1.0F, clearcoat = 0.0F;
    f32 normal_scale = 1.0F, occlusion_strength = 1.0F;
    u32 flags = 0;
    f32 emission[3] = {0.0F, 0.0F, 0.0F};
    u32 reserved = 0;
    map_slot base_color, emission_map, roughness_map, metallic_map, normal_map, occlusion_map, opacity_map,
        clearcoat_map;
};
static_assert(sizeof(material_record) == 48 + 8 * 32);

/// Attributes of a vertex that only G-buffers need.
struct alignas(16) vertex_detail {
    /// The fourth number is the sign of the bitangent. If it is 0 or 2, the file has no tangents: the tangent
    /// is computed from the triangle's texture coordinates, and reversed if the number is 2.
    f32 tangent[4];
    f32 texture[2][2];  ///< two pairs of texture coordinates, as in the file
    u16 color[4];       ///< linear RGBA, 65535 for 1
    u32 reserved[2];
};
static_assert(sizeof(vertex_detail) == 48);

}  // namespace carousel::kernels
