#pragma once
// One pixel of the G-buffer from its visibility key: the steps of shade.hpp without the light.

#include "kernels/body/emission.hpp"
#include "kernels/body/material_surface.hpp"
#include "kernels/body/setup.hpp"
#include "kernels/body/surface.hpp"
#include "kernels/kernels.hpp"

namespace carousel::kernels::body {

struct surface_job : material_source {
    camera_rays rays;
    surface_look look;
    surface_planes out;
    u32 width, height;
};

[[nodiscard]] inline surface_job make_surface_job(const fragment_stage_args& args) {
    const u64 instances = args.in.max_instances;
    const mesh_counts& counts = args.mesh.counts;
    return {{view_mesh(args.mesh, args.mesh_block, args.moved), args.in.instances,
             make_shading(args.scene, args.width, args.height, counts), instances * counts.triangle_count,
             instances * (u64{counts.triangle_count} + non_opaque_count(counts))},
            make_rays(args.scene.camera, args.width, args.height),
            args.look,
            args.surface,
            args.width,
            args.height};
}

[[nodiscard]] CAROUSEL_HD_INLINE u32 byte_of(f32 x, f32 scale) {
    return static_cast<u32>(to_i32(fma_(clamp_(x, 0.0F, 1.0F), scale, 0.5F)));
}
[[nodiscard]] CAROUSEL_HD_INLINE u32 pack_material(const instance_material& m) {
    return byte_of(m.roughness, 255.0F) | byte_of(m.metallic, 255.0F) << 8 |
           byte_of(m.clearcoat, 255.0F) << 16 | byte_of(m.emission * (1.0F / 15.9375F), 255.0F) << 24;
}

/// `tables`: decode(0..1020) and encode(0..4095), as srgb_tables.
template <typename Tables>
CAROUSEL_HD_INLINE u32 tinted(const Tables& tables, vec3 linear, const instance_material& m) {
    const auto code = [&](f32 part) { return static_cast<u32>(tables.encode(encode_index(part))); };
    return code(linear.x * m.tint[0]) | code(linear.y * m.tint[1]) << 8 | code(linear.z * m.tint[2]) << 16 |
           0xff000000U;
}
inline constexpr vec3 no_texture{1.0F, 1.0F, 1.0F};

/// A pixel's elements of the planes.
struct surface_words {
    u32 albedo, normal, material, emission;
};
/// Of a mesh with materials of its own.
template <typename Tables>
[[nodiscard]] CAROUSEL_HD_INLINE surface_words material_words(const Tables& tables, const surface_values& v) {
    if (v.unlit) return {0xff000000U, unlit_normal, byte_of(1.0F, 255.0F), pack_emission(v.base)};
    const auto code = [&](f32 linear) { return static_cast<u32>(tables.encode(encode_index(linear))); };
    return {
        code(v.base.x) | code(v.base.y) << 8 | code(v.base.z) << 16 | byte_of(v.openness, 255.0F) << 24,
        pack_normal(v.normal),
        byte_of(v.roughness, 255.0F) | byte_of(v.metallic, 255.0F) << 8 | byte_of(v.clearcoat, 255.0F) << 16,
        pack_emission(v.emission)};
}

/// 1 / view depth; 0 for the empty key.
[[nodiscard]] CAROUSEL_HD_INLINE f32 depth_of(u64 key) { return float_of(~static_cast<u32>(key >> 32)); }

/// 1 / view depth of the floor at a pixel, 0 if there is none or if it is hidden.
[[nodiscard]] CAROUSEL_HD_INLINE f32 floor_at(const surface_job& j, f32 px, f32 py, f32 depth) {
    const f32 inverse = ray_at(j.rays, px, py).y / (j.look.floor - j.rays.eye.y);
    const u32 shown = u32{j.look.has_floor != 0} & u32{inverse > max_(depth, 2.0e-3F)};
    return shown != 0 ? inverse : 0.0F;
}

/// A triangle of the mesh in the picture.
struct surface_triangle {
    u32 instance;
    u32 index[3];  ///< of its vertices, limited to valid ones
    clip_vertex c[3];
};
/// `id` must be below the limit.
[[nodiscard]] CAROUSEL_HD_INLINE surface_triangle surface_triangle_of(const surface_job& j, u32 id) {
    surface_triangle t{};
    t.instance = id / j.mesh.counts.triangle_count;
    const u32 triangle = id - t.instance * j.mesh.counts.triangle_count;
    const f32* const clip = j.instances[t.instance].clip;
    for (u32 k = 0; k < 3; ++k) {
        const u32 i = j.mesh.indices[static_cast<u64>(triangle) * 3 + k];
        t.index[k] = i < j.mesh.counts.vertex_count ? i : 0U;
        t.c[k] = to_clip(clip, position_of(j.mesh.vertices[t.index[k]]));
    }
    return t;
}
/// The packed normal between the normals of the three corners.
[[nodiscard]] CAROUSEL_HD_INLINE u32 normal_between(const barycentrics& b, const f32* model, vec3 p, vec3 q,
                                                    vec3 r) {
    return pack_normal(
        normalised(turn(model, {blend(b, p.x, q.x, r.x), blend(b, p.y, q.y, r.y), blend(b, p.z, q.z, r.z)})));
}
/// The base colour of a point of a textured triangle.
template <typename Tables>
CAROUSEL_HD_INLINE u32 textured_albedo(const surface_job& j, const Tables& tables, const surface_triangle& at,
                                       const barycentrics& b, f32 px, f32 py, const instance_material& m) {
    pixel_corners c{};
    for (u32 k = 0; k < 3; ++k) c.v[k] = j.mesh.vertices + at.index[k];
    c.weights = b;
    c.slopes = slopes_at(px, py, j.shade.scale_x, j.shade.scale_y, at.c[0], at.c[1], at.c[2]);
    c.material = texture_number_of(j, at.index[0]);
    return tinted(tables, light_in(tables, base_texels(j, c, map_repeat | map_repeat << 2)), m);
}

/// The base colour with the marks of scene_state::shading 2 (numbers of triangles) and of the wireframe.
[[nodiscard]] CAROUSEL_HD_INLINE u32 marked(const surface_job& j, u32 id, f32 px, f32 py, u32 albedo) {
    const u32 color = j.shade.mode == 2 ? shade_id(id) : albedo;
    if (j.shade.wireframe == 0 || j.shade.mode > 1) return color;
    const triangle_place place = place_of(j, id);
    clip_vertex c[3];
    for (u32 k = 0; k < 3; ++k) {
        const f32* const p = j.mesh.vertices[place.vertex[k]].position;
        c[k] = to_clip(j.instances[place.instance].clip, {p[0], p[1], p[2]});
    }
    const f32 sx = j.shade.scale_x, sy = j.shade.scale_y;
    const bool edge = near_edge(px, py, sx, sy, c[0], c[1]) || near_edge(px, py, sx, sy, c[1], c[2]) ||
                      near_edge(px, py, sx, sy, c[2], c[0]);
    return (shade_wire(edge, color) & 0xffffffU) | (albedo & 0xff000000U);
}

template <typename Tables>
[[nodiscard]] CAROUSEL_HD_INLINE surface_words floor_words(const surface_job& j, const Tables& tables) {
    return {tinted(tables, no_texture, j.look.floor_material), pack_normal({0.0F, 1.0F, 0.0F}),
            pack_material(j.look.floor_material), 0U};
}
/// The surface of triangle `id` at a position of the picture; 0 if there is no such triangle.
template <typename Tables>
[[nodiscard]] CAROUSEL_HD_INLINE surface_words triangle_words(const surface_job& j, const Tables& tables,
                                                              u32 id, f32 px, f32 py) {
    if (j.mesh.materials != nullptr && id < j.all_ids)
        return material_words(tables, material_surface_at(j, tables, id, px, py));
    if (id >= j.id_limit) return {0U, 0U, 0U, 0U};
    const surface_triangle t = surface_triangle_of(j, id);
    const barycentrics b = barycentrics_at(px, py, t.c[0], t.c[1], t.c[2]);
    const auto corner = [&](u32 k) { return normal_of(j.mesh.vertices[t.index[k]]); };
    const u32 normal = normal_between(b, j.instances[t.instance].model, corner(0), corner(1), corner(2));
    const instance_material& m = j.look.materials[t.instance % j.look.material_count];
    const u32 albedo =
        m.textured != 0 ? textured_albedo(j, tables, t, b, px, py, m) : tinted(tables, no_texture, m);
    return {albedo, normal, pack_material(m), 0U};
}
/// The element of the plane `triangle`. `id`: of a pixel's key; `floor`: floor_at().
[[nodiscard]] CAROUSEL_HD_INLINE u32 shown_triangle(const surface_job& j, u32 id, f32 floor) {
    const u64 limit = j.mesh.materials != nullptr ? j.all_ids : j.id_limit;
    return floor > 0.0F || id >= limit ? no_triangle : id;
}
[[nodiscard]] CAROUSEL_HD_INLINE bool shows_marks(const surface_job& j) {
    return j.shade.mode == 2 || j.shade.wireframe != 0;
}

/// Writes the pixel's elements of all planes.
template <typename Tables>
CAROUSEL_HD_INLINE void surface_pixel(const surface_job& j, const Tables& tables, u64 key, u32 x, u32 y) {
    const u64 at = static_cast<u64>(y) * j.width + x;
    const f32 depth = depth_of(key);
    if (j.out.albedo == nullptr) {
        j.out.depth[at] = depth;
        return;
    }
    const u32 id = static_cast<u32>(key);
    const f32 px = centre_x(j.shade, x), py = centre_y(j.shade, y), floor = floor_at(j, px, py, depth);
    surface_words w = floor > 0.0F ? floor_words(j, tables) : triangle_words(j, tables, id, px, py);
    if (shows_marks(j) && !floor && depth > 0.0F && id < j.all_ids)
        w.albedo = marked(j, id, px, py, w.albedo);
    j.out.albedo[at] = w.albedo;
    j.out.normal[at] = w.normal;
    j.out.material[at] = w.material;
    j.out.depth[at] = floor > 0.0F ? floor : depth;
    if (j.out.emission != nullptr) j.out.emission[at] = w.emission;
    if (j.out.triangle != nullptr) j.out.triangle[at] = shown_triangle(j, id, floor);
}

}  // namespace carousel::kernels::body
