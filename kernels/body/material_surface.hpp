#pragma once
// The surface at a pixel of a triangle whose mesh has materials of its own (material_record.hpp).

#include "kernels/body/map_sample.hpp"
#include "kernels/body/setup.hpp"
#include "kernels/body/surface.hpp"
#include "kernels/kernels.hpp"

namespace carousel::kernels::body {

/// The mesh and its instances, as a pixel's material is computed from them.
struct material_source {
    mesh_view mesh;
    const instance_record* instances;
    shading shade;
    u64 id_limit;  ///< ids from here on are those of triangles that are not opaque
    u64 all_ids;   ///< no id is greater
};

[[nodiscard]] CAROUSEL_HD_INLINE u32 non_opaque_count(const mesh_counts& c) {
    return c.masked_count + c.blended_count;
}

[[nodiscard]] CAROUSEL_HD_INLINE vec3 position_of(const shaded_vertex& v) {
    return {v.position[0], v.position[1], v.position[2]};
}
[[nodiscard]] CAROUSEL_HD_INLINE vec3 normal_of(const shaded_vertex& v) {
    return {v.normal[0], v.normal[1], v.normal[2]};
}

/// The instance of a triangle. Ids of opaque triangles: instance * triangle_count + triangle; of the
/// triangles that are not opaque: id_limit + instance * non_opaque_count + triangle.
[[nodiscard]] CAROUSEL_HD_INLINE u32 copy_of(const mesh_counts& mesh, u64 id_limit, u32 id) {
    const bool opaque = id < id_limit;
    return (opaque ? id : id - static_cast<u32>(id_limit)) /
           (opaque ? mesh.triangle_count : non_opaque_count(mesh));
}
/// Instance and vertex numbers of a triangle, limited to valid ones.
struct triangle_place {
    u32 instance;
    u32 vertex[3];
};
[[nodiscard]] CAROUSEL_HD_INLINE triangle_place place_of(const mesh_view& mesh, u64 id_limit, u32 id) {
    const bool opaque = id < id_limit;
    const u32 at = opaque ? id : id - static_cast<u32>(id_limit);
    const u32 count = opaque ? mesh.counts.triangle_count : non_opaque_count(mesh.counts);
    triangle_place p{};
    p.instance = at / count;
    const u32* const indices =
        (opaque ? mesh.indices : mesh.non_opaque_indices) + static_cast<u64>(at - p.instance * count) * 3;
    for (u32 k = 0; k < 3; ++k) p.vertex[k] = indices[k] < mesh.counts.vertex_count ? indices[k] : 0U;
    return p;
}
[[nodiscard]] CAROUSEL_HD_INLINE triangle_place place_of(const material_source& s, u32 id) {
    return place_of(s.mesh, s.id_limit, id);
}

/// The number of the texture of a triangle with this vertex, which is that of its material.
[[nodiscard]] CAROUSEL_HD_INLINE u32 texture_number_of(const material_source& s, u32 vertex) {
    const u32 count = s.mesh.counts.texture_count;
    return count > 1 ? min_(s.mesh.texture_numbers[vertex], count - 1U) : 0U;
}
/// All that is computed once per pixel from the corners of its triangle.
struct pixel_corners {
    const instance_record* instance;
    const shaded_vertex* v[3];
    const vertex_detail* d[3];
    barycentrics weights;
    weight_slopes slopes;
    u32 material;
};
[[nodiscard]] CAROUSEL_HD_INLINE pixel_corners corners_at(const material_source& s, u32 id, f32 px, f32 py) {
    const triangle_place place = place_of(s, id);
    pixel_corners out{};
    out.instance = s.instances + place.instance;
    clip_vertex c[3];
    for (u32 k = 0; k < 3; ++k) {
        out.v[k] = s.mesh.vertices + place.vertex[k];
        out.d[k] = s.mesh.details + place.vertex[k];
        const f32* const p = out.v[k]->position;
        c[k] = to_clip(out.instance->clip, {p[0], p[1], p[2]});
    }
    out.weights = barycentrics_at(px, py, c[0], c[1], c[2]);
    out.slopes = slopes_at(px, py, s.shade.scale_x, s.shade.scale_y, c[0], c[1], c[2]);
    out.material = texture_number_of(s, place.vertex[0]);
    return out;
}

[[nodiscard]] CAROUSEL_HD_INLINE moving_pair coordinates_of(const pixel_corners& c, const map_slot& slot) {
    const u32 set = (slot.mode & map_second_set) != 0 ? 1U : 0U;
    const auto move_along = [&](u32 axis) {
        return move(c.weights, c.slopes, c.d[0]->texture[set][axis], c.d[1]->texture[set][axis],
                    c.d[2]->texture[set][axis]);
    };
    return transformed({move_along(0), move_along(1)}, slot.transform);
}
[[nodiscard]] CAROUSEL_HD_INLINE map_texels texels_of(const material_source& s, const pixel_corners& c,
                                                      const map_slot& slot) {
    const u32 map = min_(slot.map, s.mesh.counts.map_count - 1U);
    return texels_at(s.mesh.maps, s.mesh.counts.map_texels, s.mesh.map_records[map], slot.mode,
                     coordinates_of(c, slot));
}
[[nodiscard]] CAROUSEL_HD_INLINE bool is_used(const material_source& s, const map_slot& slot) {
    return slot.map != no_map && s.mesh.counts.map_count > 0;
}
/// One channel of a map, 0..1; 1 if the slot has no map.
[[nodiscard]] CAROUSEL_HD_INLINE f32 number_of(const material_source& s, const pixel_corners& c,
                                               const map_slot& slot) {
    if (!is_used(s, slot)) return 1.0F;
    return static_cast<f32>(number_in(texels_of(s, c, slot), slot.mode >> map_channel_shift & 3U)) *
           (1.0F / 1020.0F);
}

/// The base colour's texture. Its coordinates are those of shaded_vertex, which have the transform.
[[nodiscard]] CAROUSEL_HD_INLINE map_texels base_texels(const material_source& s, const pixel_corners& c,
                                                        u32 mode) {
    const texture_record& record =
        s.mesh.counts.texture_count > 1 ? s.mesh.texture_records[c.material] : s.shade.texture;
    const auto move_along = [&](u32 axis) {
        return move(c.weights, c.slopes, c.v[0]->texture[axis], c.v[1]->texture[axis], c.v[2]->texture[axis]);
    };
    return texels_at(reinterpret_cast<const u32*>(s.mesh.texture), s.shade.texel_count, record, mode,
                     {move_along(0), move_along(1)});
}
[[nodiscard]] CAROUSEL_HD_INLINE f32 vertex_color(const pixel_corners& c, u32 channel) {
    return blend(c.weights, static_cast<f32>(c.d[0]->color[channel]),
                 static_cast<f32>(c.d[1]->color[channel]), static_cast<f32>(c.d[2]->color[channel])) *
           (1.0F / 65535.0F);
}
[[nodiscard]] CAROUSEL_HD_INLINE f32 opacity_of(const material_source& s, const pixel_corners& c,
                                                const material_record& m, const map_texels& base) {
    const f32 map = number_of(s, c, m.opacity_map);
    return m.opacity * map * vertex_color(c, 3) * (static_cast<f32>(number_in(base, 3)) * (1.0F / 1020.0F));
}
/// The opacity of a triangle at a pixel, 0..1.
[[nodiscard]] CAROUSEL_HD_INLINE f32 opacity_at(const material_source& s, u32 id, f32 px, f32 py) {
    const pixel_corners c = corners_at(s, id, px, py);
    const material_record& m = s.mesh.materials[c.material];
    return opacity_of(s, c, m, base_texels(s, c, m.base_color.mode));
}
/// True if a pixel of a triangle with an alpha mask is drawn.
[[nodiscard]] CAROUSEL_HD_INLINE bool passes_mask(const material_source& s, u32 id, f32 px, f32 py) {
    const pixel_corners c = corners_at(s, id, px, py);
    const material_record& m = s.mesh.materials[c.material];
    return opacity_of(s, c, m, base_texels(s, c, m.base_color.mode)) >= m.cutoff;
}

[[nodiscard]] CAROUSEL_HD_INLINE vec3 cross(vec3 a, vec3 b) {
    return {fma_(a.y, b.z, -(a.z * b.y)), fma_(a.z, b.x, -(a.x * b.z)), fma_(a.x, b.y, -(a.y * b.x))};
}
/// The tangent in the mesh's own space, and the sign of the bitangent.
struct tangent_frame {
    vec3 tangent;
    f32 sign;
};
/// From the texture coordinates over the triangle: constant over it. The texture's v points down, and green
/// of a normal map up.
[[nodiscard]] CAROUSEL_HD_INLINE tangent_frame computed_tangent(const pixel_corners& c,
                                                                const map_slot& slot) {
    const u32 set = (slot.mode & map_second_set) != 0 ? 1U : 0U;
    const f32* const m = slot.transform;
    const auto edge = [&](u32 k) {
        const f32 *const p = c.v[k]->position, *const q = c.v[0]->position;
        return vec3{p[0] - q[0], p[1] - q[1], p[2] - q[2]};
    };
    const f32 raw_u1 = c.d[1]->texture[set][0] - c.d[0]->texture[set][0],
              raw_v1 = c.d[1]->texture[set][1] - c.d[0]->texture[set][1],
              raw_u2 = c.d[2]->texture[set][0] - c.d[0]->texture[set][0],
              raw_v2 = c.d[2]->texture[set][1] - c.d[0]->texture[set][1];
    const f32 u1 = fma_(m[0], raw_u1, m[1] * raw_v1), v1 = fma_(m[3], raw_u1, m[4] * raw_v1),
              u2 = fma_(m[0], raw_u2, m[1] * raw_v2), v2 = fma_(m[3], raw_u2, m[4] * raw_v2);
    const f32 determinant = fma_(u1, v2, -(u2 * v1));
    const f32 turned = c.d[0]->tangent[3] > 1.5F ? -1.0F : 1.0F;
    const f32 side = determinant < 0.0F ? -turned : turned;
    return {along(edge(1) * (v2 * side), edge(2), -(v1 * side)), determinant < 0.0F ? 1.0F : -1.0F};
}
/// The normal of the pixel in the world, turned by the normal map.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 mapped_normal(const material_source& s, const pixel_corners& c,
                                                    const material_record& m, vec3 n) {
    tangent_frame frame{};
    const f32 given = c.d[0]->tangent[3];
    if (given == 0.0F || given > 1.5F) {
        frame = computed_tangent(c, m.normal_map);
    } else {
        const auto part = [&](u32 k) {
            return blend(c.weights, c.d[0]->tangent[k], c.d[1]->tangent[k], c.d[2]->tangent[k]);
        };
        frame = {{part(0), part(1), part(2)}, given};
    }
    const vec3 turned = turn(c.instance->model, frame.tangent);
    const vec3 t = along(turned, n, -dot(n, turned));
    const f32 square = dot(t, t);
    if (!(square > 0.0F) || !is_finite(square)) return n;  // no texture coordinates: no direction
    const vec3 tangent = t * (1.0F / sqrt_(square)), bitangent = cross(n, tangent) * frame.sign;
    const map_texels texels = texels_of(s, c, m.normal_map);
    const auto part = [&](u32 k) {
        return fma_(static_cast<f32>(number_in(texels, k)), 1.0F / 510.0F, -1.0F);
    };
    return unit(
        along(along(n * part(2), tangent, part(0) * m.normal_scale), bitangent, part(1) * m.normal_scale));
}

/// What a G-buffer stores of a pixel.
struct surface_values {
    vec3 base;  ///< linear
    vec3 normal;
    f32 roughness, metallic, clearcoat, openness, opacity;
    vec3 emission;
    bool unlit;
};
/// `tables`: as for tinted().
template <typename Tables>
[[nodiscard]] CAROUSEL_HD_INLINE surface_values material_surface_at(const material_source& s,
                                                                    const Tables& tables, u32 id, f32 px,
                                                                    f32 py) {
    const pixel_corners c = corners_at(s, id, px, py);
    const material_record& m = s.mesh.materials[c.material];
    surface_values out{};
    const map_texels base = base_texels(s, c, m.base_color.mode);
    out.base = light_in(tables, base) * vec3{vertex_color(c, 0), vertex_color(c, 1), vertex_color(c, 2)};
    out.opacity = (m.flags & material_blended) != 0 ? opacity_of(s, c, m, base) : 1.0F;
    const auto normal_part = [&](u32 k) {
        return blend(c.weights, c.v[0]->normal[k], c.v[1]->normal[k], c.v[2]->normal[k]);
    };
    out.normal = normalised(turn(c.instance->model, {normal_part(0), normal_part(1), normal_part(2)}));
    out.unlit = (m.flags & material_unlit) != 0;
    if (out.unlit) return out;
    if (is_used(s, m.normal_map)) out.normal = mapped_normal(s, c, m, out.normal);
    out.roughness = m.roughness * number_of(s, c, m.roughness_map);
    out.metallic = m.metallic * number_of(s, c, m.metallic_map);
    out.clearcoat = m.clearcoat * number_of(s, c, m.clearcoat_map);
    out.openness = fma_(m.occlusion_strength, number_of(s, c, m.occlusion_map) - 1.0F, 1.0F);
    out.emission = {m.emission[0], m.emission[1], m.emission[2]};
    if (is_used(s, m.emission_map) && max_(m.emission[0], max_(m.emission[1], m.emission[2])) > 0.0F)
        out.emission = out.emission * light_in(tables, texels_of(s, c, m.emission_map));
    return out;
}

}  // namespace carousel::kernels::body
