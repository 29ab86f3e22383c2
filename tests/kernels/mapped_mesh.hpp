#pragma once
// Meshes with mip levels or several textures, as blocks made by hand.

#include <cstring>
#include <random>
#include <vector>

#include "kernels/assets.hpp"

namespace carousel::kernels::testing {

struct mapped_mesh {
    mesh_layout layout;
    std::vector<std::byte> block;
    template <typename T>
    T* at(u64 offset) {
        return reinterpret_cast<T*>(block.data() + offset);
    }
};

inline mapped_mesh empty_mesh(const mesh_counts& counts) {
    mapped_mesh m{lay_out_mesh(counts), {}};
    m.block.resize(m.layout.bytes);
    *m.at<mesh_header>(0) = mesh_header{mesh_magic, mesh_version, counts};
    return m;
}

inline void put_vertex(mapped_mesh& m, u32 i, shaded_vertex v, f32 u, f32 w) {
    v.texture[0] = u, v.texture[1] = w;
    store_vertex(m.block.data(), m.layout, i, v);
}

/// A square of side 2 in z = 0, its texture of side x side texels over it once; all of level l has the code
/// 16 l + 8.
inline mapped_mesh square_with_levels(u32 side) {
    mesh_counts counts{4, 2, side, side};
    counts.texture_levels = mip_levels(side, side);
    mapped_mesh m = empty_mesh(counts);
    for (u32 i = 0; i < 4; ++i) {
        const f32 x = (i & 1U) ? 1.0F : -1.0F, y = (i & 2U) ? 1.0F : -1.0F;
        put_vertex(m, i, {{x, y, 0}, {0, 0, 1}, {}}, (x + 1) / 2, (1 - y) / 2);
    }
    const u32 indices[6] = {0, 1, 3, 0, 3, 2};
    std::memcpy(m.at<u32>(m.layout.indices), indices, sizeof indices);
    for (u32 l = 0; l < counts.texture_levels; ++l) {
        u32* const first = m.at<u32>(m.layout.texture) + texture_texels(side, side, l);
        for (u32 i = 0; i < level_side(side, l) * level_side(side, l); ++i)
            first[i] = (16 * l + 8) * 0x10101U;
    }
    return m;
}

/// The triangle soup with four noisy textures of odd sizes, whole chains, and texture coordinates of a few
/// times around.
inline mapped_mesh soup_with_textures(u32 triangles) {
    constexpr u32 sizes[4][2] = {{1, 1}, {3, 5}, {64, 64}, {200, 31}};
    mesh_counts counts = procedural_counts(mesh_shape::triangle_soup, triangles);
    counts.texture_width = counts.texture_height = 1;
    counts.texture_count = 4;
    std::vector<texture_record> records;
    for (const auto& s : sizes) {
        records.push_back(describe_texture(s[0], s[1], mip_levels(s[0], s[1]), counts.texel_count));
        counts.texel_count += static_cast<u32>(texture_texels(s[0], s[1], mip_levels(s[0], s[1])));
    }
    mapped_mesh m = empty_mesh(counts);
    const body::shape_grid grid = describe_procedural(mesh_shape::triangle_soup, triangles).grid;
    for (u32 i = 0; i < counts.vertex_count; ++i) {
        put_vertex(m, i, body::vertex_of(grid, i), static_cast<f32>(i % 3) * 2.5F,
                   static_cast<f32>(i % 5) * 0.7F);
        m.at<u32>(m.layout.texture_numbers)[i] = i / 3 % 4;
        m.at<u32>(m.layout.indices)[i] = i;
    }
    std::memcpy(m.at<std::byte>(m.layout.texture_records), records.data(),
                records.size() * sizeof(texture_record));
    std::mt19937 random(11);
    for (const texture_record& r : records) {
        u32* const first = m.at<u32>(m.layout.texture) + r.begin[0];
        for (u32 i = 0; i < r.width * r.height; ++i) first[i] = static_cast<u32>(random());
        build_mip_chain(first, r.width, r.height, r.levels);
    }
    return m;
}

}  // namespace carousel::kernels::testing
