#pragma once
// Triangles that are not opaque (material_record.hpp): their parts on the screen, and the test of each pixel.
// They have no place in the list of the vertex stage: each one of each instance is set up here.

#include "kernels/body/clip.hpp"
#include "kernels/body/material_surface.hpp"
#include "kernels/body/setup.hpp"

namespace carousel::kernels::body {

/// The parts of one triangle on the screen: itself, or the fan of its clipped polygon.
struct screen_parts {
    u32 count;
    screen_triangle part[max_clipped_vertices - 2];
};
[[nodiscard]] CAROUSEL_HD_INLINE screen_parts parts_of(const material_source& s, const viewport& view,
                                                       u32 id) {
    screen_parts out{};
    const triangle_place place = place_of(s, id);
    const f32* const clip = s.instances[place.instance].clip;
    clip_vertex polygon[max_clipped_vertices];
    u32 any = 0, all = ~0U;
    for (u32 k = 0; k < 3; ++k) {
        const f32* const p = s.mesh.positions + static_cast<u64>(place.vertex[k]) * 3;
        polygon[k] = to_clip(clip, {p[0], p[1], p[2]});
        const u32 code = outcode_of(polygon[k], view);
        any |= code;
        all &= code;
    }
    if ((any & out_not_finite) != 0 || (all & out_any_side) != 0) return out;
    const u32 corners = (any & out_needs_clip) != 0 ? clip_polygon(polygon, view) : 3U;
    for (u32 k = 1; k + 1 < corners; ++k) {
        const screen_triangle t = make_triangle(project(polygon[0], view, 0), project(polygon[k], view, 0),
                                                project(polygon[k + 1], view, 0));
        if (!box_of(t, view.width, view.height).empty() && double_area(t) > 0) out.part[out.count++] = t;
    }
    return out;
}

/// The edge functions and the depth of a part, from which each pixel is computed alone.
struct pixel_test {
    edge_functions<i64> edges;  ///< at the pixel (0, 0)
    depth_plane depth;
};
[[nodiscard]] CAROUSEL_HD_INLINE pixel_test make_pixel_test(const screen_triangle& t) {
    return {edges_at<i64>(t, 0, 0), make_depth(t, double_area(t))};
}
/// The key of a pixel; empty_key if the part does not cover it.
[[nodiscard]] CAROUSEL_HD_INLINE u64 key_at(const pixel_test& t, u32 x, u32 y, u32 id) {
    i64 e[3];
    i64 covered = 0;
    for (u32 k = 0; k < 3; ++k) {
        e[k] =
            t.edges.e[k] + static_cast<i64>(x) * t.edges.step_x[k] + static_cast<i64>(y) * t.edges.step_y[k];
        covered |= e[k] + t.edges.bias[k];
    }
    if (covered < 0) return empty_key;
    return make_key(depth_bits(t.depth, static_cast<f32>(e[1]), static_cast<f32>(e[2])), id);
}

}  // namespace carousel::kernels::body
