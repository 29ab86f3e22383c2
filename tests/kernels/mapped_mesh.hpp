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

/// The same with materials of its own: maps of each kind and border, given and computed tangents, two sets of
/// texture coordinates, colours, triangles with a mask, and transparent ones.
inline mapped_mesh soup_with_materials(u32 triangles) {
    const mapped_mesh plain = soup_with_textures(triangles);
    mesh_counts counts = plain.layout.counts;
    counts.material_count = counts.texture_count;
    counts.map_count = 2;
    const texture_record first = describe_texture(33, 17, mip_levels(33, 17), 0);
    const u32 second_begin = static_cast<u32>(texture_texels(33, 17, first.levels));
    const texture_record second = describe_texture(8, 8, mip_levels(8, 8), second_begin);
    counts.map_texels = second_begin + static_cast<u32>(texture_texels(8, 8, second.levels));
    counts.masked_count = triangles / 8;
    counts.blended_count = triangles / 8;
    mapped_mesh m = empty_mesh(counts);
    std::memcpy(m.block.data() + sizeof(mesh_header), plain.block.data() + sizeof(mesh_header),
                plain.layout.bytes - sizeof(mesh_header));
    material_record* const materials = m.at<material_record>(m.layout.materials);
    for (u32 i = 0; i < 4; ++i) materials[i] = material_record{};
    const auto slot = [](u32 map, u32 mode) {
        map_slot s;
        s.map = map, s.mode = mode;
        s.transform[0] = 1.5F, s.transform[1] = 0.25F, s.transform[2] = -0.75F;
        return s;
    };
    materials[0].normal_map = slot(0, map_mirror | map_clamp << 2);
    materials[0].roughness_map = slot(1, 1U << map_channel_shift);
    materials[0].metallic_map = slot(1, 2U << map_channel_shift | map_second_set);
    materials[1].normal_map = slot(1, map_second_set | map_nearest);
    materials[1].normal_scale = -0.5F;
    materials[1].emission_map = slot(0, map_repeat | map_mirror << 2);
    materials[1].emission[0] = 12.0F, materials[1].emission[1] = 0.02F;
    materials[1].occlusion_map = slot(0, map_clamp);
    materials[1].occlusion_strength = 0.7F;
    materials[2].flags = material_unlit;
    materials[2].base_color.mode = map_clamp | map_mirror << 2;
    materials[3].flags = material_masked | material_blended;
    materials[3].opacity = 0.9F;
    materials[3].opacity_map = slot(1, 3U << map_channel_shift);
    materials[3].clearcoat = 0.8F;
    materials[3].clearcoat_map = slot(1, 0);
    materials[3].emission[2] = 70000.0F;  // beyond what a G-buffer stores
    vertex_detail* const details = m.at<vertex_detail>(m.layout.details);
    for (u32 i = 0; i < counts.vertex_count; ++i) {
        const f32 turn = static_cast<f32>(i % 7);
        const u32 triangle = i / 3;
        details[i] = {
            {1.0F, turn, 0.5F, triangle % 3 == 0 ? 0.0F : (triangle % 3 == 1 ? 2.0F : -1.0F)},
            {{turn * 0.3F, static_cast<f32>(i % 3)}, {static_cast<f32>(i % 2), turn}},
            {65535, static_cast<u16>(9000 * (i % 7)), 40000, static_cast<u16>(65535 - 9000 * (i % 4))},
            {}};
    }
    u32* const non_opaque = m.at<u32>(m.layout.non_opaque_indices);
    for (u32 t = 0; t < counts.masked_count + counts.blended_count; ++t)
        for (u32 k = 0; k < 3; ++k) non_opaque[3 * t + k] = 3 * (4 * t + 3) + k;
    texture_record* const records = m.at<texture_record>(m.layout.map_records);
    records[0] = first, records[1] = second;
    std::mt19937 random(12);
    for (const texture_record& r : {first, second}) {
        u32* const texels = m.at<u32>(m.layout.maps) + r.begin[0];
        for (u32 i = 0; i < r.width * r.height; ++i) texels[i] = static_cast<u32>(random());
        build_linear_mip_chain(texels, r.width, r.height, r.levels);
    }
    return m;
}

}  // namespace carousel::kernels::testing
