#pragma once
// Memory of a mesh: the asset block that all frames share. The offsets are computed from counts, so that
// every stage gets the same layout from the numbers in the frame format and no stage has to read the block on
// the host. The block contains these parts, each 256-byte aligned:
//   mesh_header, at 0
//   bounds of each cluster of 128 triangles
//   vertices of each cluster u16[C][256]
//   triangles of the clusters, as places in the clusters' vertices u32[T]
//   positions f32[V][3]
//   all attributes of each vertex shaded_vertex[V]
//   indices u32[T][3]
//   with several textures: the texture number of each vertex u32[V], and a texture_record for each texture
//   base colours u8[h][w][4] (RGBA, sRGB; after each picture its mip levels)
//   with materials of its own (material_record.hpp): a material_record for each texture, a vertex_detail for
//   each vertex, indices of the triangles that are not opaque u32[masked + blended][3], and the maps: a
//   texture_record for each, then texels u8[h][w][4], as those of base colours; then a punctual_light for
//   each light
// Front faces are counter-clockwise seen from outside. Positions are stored twice, for two kinds of readers:
// code that places triangles reads only the 12 bytes of a position; code that shades a pixel reads all
// attributes of three arbitrary vertices, so the attributes of each vertex are contiguous in memory.

#include "core/host_device.hpp"
#include "core/types.hpp"
#include "kernels/material_record.hpp"
#include "kernels/punctual_light.hpp"

namespace carousel::kernels {

inline constexpr u64 block_alignment = 256;
inline constexpr u32 mesh_magic = 0x4d455348;  // "MESH"
inline constexpr u32 mesh_version = 3;         ///< 2 added vertex lists; 3 made whole vertices contiguous

/// Maximum values that the kernels accept: triangle ids of all instances must stay below 2^32 - 1.
inline constexpr u32 max_texture_extent = 16384;

inline constexpr u32 max_texture_levels = 15;  ///< levels of a texture with the largest side
inline constexpr u32 max_textures = 65536;
inline constexpr u64 max_texels = 0xf0000000ULL;  ///< limit for all textures of a mesh together, because
                                                  ///< texel numbers are 32-bit

struct mesh_counts {
    u32 vertex_count = 0;
    u32 triangle_count = 0;
    u32 texture_width = 1;  ///< pixels, 1 .. max_texture_extent
    u32 texture_height = 1;
    u32 texture_levels = 1;  ///< number of mip levels; the filter is bilinear if there is one level, and
                             ///< trilinear if there are several
    u32 texture_count = 1;   ///< number of textures; if there are several, each vertex has a texture number
                             ///< (the same at all corners of a triangle), and each texture has a record
    /// if there are several textures, the number of texels of all of them together; if there is one, its size
    /// determines this number
    u32 texel_count = 0;
    // Materials of the mesh's own, for G-buffers; all 0 if there are none.
    u32 material_count = 0;  ///< 0, or texture_count: the number of a texture is that of its material
    u32 map_count = 0;       ///< textures other than those of base colours
    u32 map_texels = 0;      ///< number of texels of all maps together
    /// Triangles in addition to triangle_count that only G-buffers show: with an alpha mask, and transparent.
    u32 masked_count = 0, blended_count = 0;
    u32 light_count = 0;  ///< lights of the file, for the stage that lights the G-buffer
    bool operator==(const mesh_counts&) const = default;
};

/// The header at the block's start, with which a reader checks that the block matches its frame format.
struct mesh_header {
    u32 magic = mesh_magic;
    u32 version = mesh_version;
    mesh_counts counts;
};
static_assert(sizeof(mesh_header) <= block_alignment);

/// Number of triangles per cluster; they are consecutive in the mesh.
inline constexpr u32 cluster_triangles = 128;
inline constexpr u32 cluster_vertices = 256;  ///< maximum number of vertices that a cluster lists

/// Cluster data of body/cluster.hpp, in the mesh's own space. If all fields are zero, the bounds are unknown:
/// the cluster is never hidden and has no vertex list.
struct cluster_bounds {
    f32 centre[3], radius;  ///< sphere around all corners
    f32 axis[3], spread;    ///< every triangle's normal has at least the cosine `spread` with the axis
    f32 edge, smallest;     ///< the longest side of any triangle, and twice the smallest area of any triangle
    u32 first_vertex, vertex_count;  ///< the range of vertices in the cluster's vertex list; if the count is
                                     ///< 0, there is no list, and the cluster's triangles are read from the
                                     ///< mesh's indices
};
static_assert(sizeof(cluster_bounds) == 48);

[[nodiscard]] CAROUSEL_HD_INLINE constexpr u32 cluster_count(const mesh_counts& c) {
    return c.triangle_count / cluster_triangles + (c.triangle_count % cluster_triangles != 0 ? 1U : 0U);
}

/// All attributes of a vertex.
struct alignas(32) shaded_vertex {
    f32 position[3], normal[3];
    f32 texture[2];  ///< texture coordinates: 0..1 spans the texture, which repeats; v points down
};
static_assert(sizeof(shaded_vertex) == 32);

/// Byte offsets from the start of the block.
struct mesh_layout {
    mesh_counts counts;
    u64 clusters = 0, local_vertices = 0, local_corners = 0, positions = 0, vertices = 0, indices = 0,
        texture = 0;
    u64 texture_numbers = 0, texture_records = 0;  ///< both parts are empty if there is only one texture
    u64 materials = 0, details = 0, non_opaque_indices = 0, map_records = 0, maps = 0, lights = 0;
    u64 bytes = 0;  ///< size of the whole block
};

[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 align_block(u64 bytes) {
    return (bytes + block_alignment - 1) / block_alignment * block_alignment;
}

/// Side of a mip level: half the side of the previous level, rounded down, but at least 1.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u32 level_side(u32 side, u32 level) {
    return side >> level > 1 ? side >> level : 1U;
}

/// Number of levels of a complete chain, down to 1 x 1.
[[nodiscard]] inline constexpr u32 mip_levels(u32 width, u32 height) {
    u32 levels = 1;
    for (u32 side = width > height ? width : height; side > 1; side >>= 1) ++levels;
    return levels;
}

/// One texture: its size, and the positions at which its levels begin, counted in texels from the start of
/// the first texture.
struct texture_record {
    u32 width = 1, height = 1, levels = 1;
    u32 begin[max_texture_levels] = {};
    u32 reserved[2] = {};
};
static_assert(sizeof(texture_record) == 80);

/// Returns the record of a texture whose texels begin at `first`. The caller must first check with
/// texture_texels(), which computes in 64 bits, that the size is within the limit.
[[nodiscard]] inline constexpr texture_record describe_texture(u32 width, u32 height, u32 levels, u32 first) {
    texture_record r;
    r.width = width, r.height = height, r.levels = levels;
    for (u32 l = 0; l < levels && l < max_texture_levels; ++l) {
        r.begin[l] = first;
        first += level_side(width, l) * level_side(height, l);
    }
    return r;
}

/// Number of texels of a texture including its mip levels.
[[nodiscard]] inline constexpr u64 texture_texels(u32 width, u32 height, u32 levels) {
    u64 texels = 0;
    for (u32 l = 0; l < levels && l < max_texture_levels; ++l)
        texels += static_cast<u64>(level_side(width, l)) * level_side(height, l);
    return texels;
}
[[nodiscard]] inline constexpr u64 texture_texels(const mesh_counts& c) {
    return c.texture_count > 1 ? c.texel_count
                               : texture_texels(c.texture_width, c.texture_height, c.texture_levels);
}

[[nodiscard]] inline constexpr mesh_layout lay_out_mesh(const mesh_counts& counts) {
    mesh_layout l;
    l.counts = counts;
    const u64 v = counts.vertex_count, t = counts.triangle_count;
    l.clusters = block_alignment;
    l.local_vertices = l.clusters + align_block(cluster_count(counts) * sizeof(cluster_bounds));
    l.local_corners =
        l.local_vertices + align_block(u64{cluster_count(counts)} * cluster_vertices * sizeof(u16));
    l.positions = l.local_corners + align_block(t * 4);
    l.vertices = l.positions + align_block(v * 12);
    l.indices = l.vertices + align_block(v * sizeof(shaded_vertex));
    const u64 textures = counts.texture_count > 1 ? counts.texture_count : 0;
    l.texture_numbers = l.indices + align_block(t * 12);
    l.texture_records = l.texture_numbers + (textures > 0 ? align_block(v * 4) : 0);
    l.texture = l.texture_records + align_block(textures * sizeof(texture_record));
    l.materials = l.texture + align_block(texture_texels(counts) * 4);
    l.details = l.materials + align_block(u64{counts.material_count} * sizeof(material_record));
    l.non_opaque_indices =
        l.details + (counts.material_count > 0 ? align_block(v * sizeof(vertex_detail)) : 0);
    l.map_records =
        l.non_opaque_indices + align_block((u64{counts.masked_count} + counts.blended_count) * 12);
    l.maps = l.map_records + align_block(u64{counts.map_count} * sizeof(texture_record));
    l.lights = l.maps + align_block(u64{counts.map_texels} * 4);
    l.bytes = l.lights + align_block(u64{counts.light_count} * sizeof(punctual_light));
    return l;
}

/// Stores vertex `i` in both arrays.
CAROUSEL_HD_INLINE void store_vertex(std::byte* block, const mesh_layout& l, u64 i, const shaded_vertex& v) {
    f32* const position = reinterpret_cast<f32*>(block + l.positions) + 3 * i;
    for (u32 k = 0; k < 3; ++k) position[k] = v.position[k];
    reinterpret_cast<shaded_vertex*>(block + l.vertices)[i] = v;
}

/// The block as pointers on the device that reads it. Owns nothing.
struct mesh_view {
    mesh_counts counts;
    const f32* positions = nullptr;
    const shaded_vertex* vertices = nullptr;
    const u32* indices = nullptr;
    const u8* texture = nullptr;
    const u32* texture_numbers = nullptr;
    const texture_record* texture_records = nullptr;
    const cluster_bounds* clusters = nullptr;
    /// [cluster][256]: vertex numbers minus the cluster's first_vertex, ascending; unused entries are 0
    const u16* local_vertices = nullptr;
    /// for each triangle, the positions of its corners in that vertex list: 8 bits per corner, the first
    /// corner in the lowest bits
    const u32* local_corners = nullptr;
    // null if the mesh has no materials of its own
    const material_record* materials = nullptr;
    const vertex_detail* details = nullptr;
    const u32* non_opaque_indices =
        nullptr;  ///< of the triangles that are not opaque; those with a mask are first
    const texture_record* map_records = nullptr;
    const u32* maps = nullptr;
};

[[nodiscard]] inline mesh_view view_mesh(const mesh_layout& l, const std::byte* block) {
    mesh_view view{l.counts,
                   reinterpret_cast<const f32*>(block + l.positions),
                   reinterpret_cast<const shaded_vertex*>(block + l.vertices),
                   reinterpret_cast<const u32*>(block + l.indices),
                   reinterpret_cast<const u8*>(block + l.texture),
                   reinterpret_cast<const u32*>(block + l.texture_numbers),
                   reinterpret_cast<const texture_record*>(block + l.texture_records),
                   reinterpret_cast<const cluster_bounds*>(block + l.clusters),
                   reinterpret_cast<const u16*>(block + l.local_vertices),
                   reinterpret_cast<const u32*>(block + l.local_corners)};
    if (l.counts.material_count == 0) return view;
    view.materials = reinterpret_cast<const material_record*>(block + l.materials);
    view.details = reinterpret_cast<const vertex_detail*>(block + l.details);
    view.non_opaque_indices = reinterpret_cast<const u32*>(block + l.non_opaque_indices);
    view.map_records = reinterpret_cast<const texture_record*>(block + l.map_records);
    view.maps = reinterpret_cast<const u32*>(block + l.maps);
    return view;
}

}  // namespace carousel::kernels
