#pragma once
// Building blocks of the raster tiers: reading a triangle (with every bound checked), clipping it, and
// drawing it as a box or as a sliver, by one thread or by a warp. Included only by fragment_stage.cu.

#include "kernels/body/clip.hpp"
#include "kernels/body/setup.hpp"
#include "kernels/kernels.hpp"

namespace carousel::kernels::cuda {
namespace {

using namespace body;  // NOLINT: the file is built from these functions

constexpr u32 large_capacity = 1U << 18;
constexpr i32 tile_side = 64;
constexpr i64 medium_area = 4096, least_sliver_box = 512;

struct scratch_header {
    u32 large;  ///< number of triangles passed to the tiles, minus one; may exceed large_capacity
};

/// A triangle that is passed to the tiles: either a whole triangle, or one triangle of the fan into which a
/// clipped triangle is split.
struct alignas(16) large_triangle {
    screen_triangle t;
    u32 id;
};
/// The bounding box of a large triangle's pixels, both ends included. Boxes are stored separately, because
/// every tile reads all of them.
struct alignas(8) large_box {
    u16 x0, y0, x1, y1;
};

struct raster_args {
    mesh_view mesh;
    triangle_buffers in;
    viewport view;
    scratch_header* header;
    unsigned long long* keys;
    large_box* boxes;
    large_triangle* large;
    u32 id_limit;  ///< max_instances * triangles
    raster_path path;
};

__device__ __forceinline__ u32 from_first(u32 x) { return __shfl_sync(~0U, x, 0); }
__device__ __forceinline__ u32 small_count(const raster_args& a) {
    return min_(a.in.counters->small, a.id_limit);
}
__device__ __forceinline__ u32 large_count(const raster_args& a) {
    return min_(a.in.counters->large, a.id_limit - small_count(a));
}

/// The vertex numbers of a triangle's corners. If the triangle is to be skipped, `first` is ~0.
struct corner_numbers {
    u32 first, second, third, instance;
};
__device__ __forceinline__ corner_numbers corners_of(const raster_args& a, u32 id) {
    if (id >= a.id_limit) return {~0U, 0, 0, 0};
    u32 instance = 0, triangle = id;
    if (a.in.max_instances > 1) {
        instance = id / a.mesh.counts.triangle_count;
        triangle = id - instance * a.mesh.counts.triangle_count;
    }
    const u32* const index = a.mesh.indices + u64{triangle} * 3;
    return {index[0], index[1], index[2], instance};
}

/// An instance's matrix to clip space, and the mesh's vertex positions.
struct placed_mesh {
    f32 clip[12];
    const f32* positions;
};
__device__ __forceinline__ placed_mesh place_mesh(const raster_args& a, u32 instance) {
    placed_mesh m;
    m.positions = a.mesh.positions;
    const float4* const rows = reinterpret_cast<const float4*>(a.in.instances[instance].clip);
#pragma unroll
    for (u32 k = 0; k < 3; ++k) {
        const float4 r = rows[k];
        m.clip[4 * k] = r.x, m.clip[4 * k + 1] = r.y, m.clip[4 * k + 2] = r.z, m.clip[4 * k + 3] = r.w;
    }
    return m;
}
__device__ __forceinline__ clip_vertex clip_at(const placed_mesh& m, u32 number) {
    const f32* const p = m.positions + u64{number} * 3;
    return to_clip(m.clip, {p[0], p[1], p[2]});
}

struct fetched {
    screen_vertex v[3];
    bool valid;
};

/// The triangle on the screen, computed as in the vertex stage. Indices are bounded here; any matrix gives
/// coordinates within the limit.
__device__ __forceinline__ fetched fetch(const raster_args& a, const corner_numbers& c) {
    fetched f{};
    const u32 limit = a.mesh.counts.vertex_count;
    if (c.first >= limit || c.second >= limit || c.third >= limit) return f;
    const placed_mesh m = place_mesh(a, c.instance);
    const auto at = [&](u32 number) {
        const clip_vertex v = clip_at(m, number);
        return project(v, a.view, outcode_of(v, a.view));
    };
    f.v[0] = at(c.first), f.v[1] = at(c.second), f.v[2] = at(c.third);
    f.valid = ((f.v[0].outcode | f.v[1].outcode | f.v[2].outcode) & out_not_finite) == 0;
    return f;
}

/// Like fetch(), for triangles that the vertex stage has classified as small. Such triangles are neither
/// clipped nor dropped, so their outcodes are not computed. If the data is invalid, the result is some
/// triangle within the limit; if a corner does not exist, the result is a triangle without area.
__device__ __forceinline__ screen_triangle fetch_small(const raster_args& a, const corner_numbers& c) {
    screen_triangle none{};
    const u32 limit = a.mesh.counts.vertex_count;
    if (c.first >= limit || c.second >= limit || c.third >= limit) return none;
    const placed_mesh m = place_mesh(a, c.instance);
    return make_triangle(project(clip_at(m, c.first), a.view, 0), project(clip_at(m, c.second), a.view, 0),
                         project(clip_at(m, c.third), a.view, 0));
}
__device__ __forceinline__ bool needs_clip(const fetched& f) {
    return ((f.v[0].outcode | f.v[1].outcode | f.v[2].outcode) & out_needs_clip) != 0;
}

/// Computes the clipped polygon of a triangle for which fetch() returned valid; returns the polygon's number
/// of corners.
__device__ __noinline__ u32 clipped_polygon(const raster_args& a, u32 id,
                                            clip_vertex (&polygon)[max_clipped_vertices]) {
    const u32 instance = id / a.mesh.counts.triangle_count, triangle = id % a.mesh.counts.triangle_count;
    const f32* const clip = a.in.instances[instance].clip;
    for (u32 k = 0; k < 3; ++k) {
        const f32* const p = a.mesh.positions + u64{a.mesh.indices[u64{triangle} * 3 + k]} * 3;
        polygon[k] = to_clip(clip, {p[0], p[1], p[2]});
    }
    return clip_polygon(polygon, a.view);
}
__device__ __forceinline__ screen_triangle fan_triangle(const raster_args& a,
                                                        const clip_vertex (&polygon)[max_clipped_vertices],
                                                        u32 k) {
    return make_triangle(project(polygon[0], a.view, 0), project(polygon[k], a.view, 0),
                         project(polygon[k + 1], a.view, 0));
}

__device__ __forceinline__ void put(const raster_args& a, i32 x, i32 y, u32 depth, u32 id) {
    // The stored key is not read and compared before the atomic: the thread would have to wait for the value
    // that it reads, but it does not wait for the result of the atomic.
    atomicMin(a.keys + i64{y} * a.view.width + x, static_cast<unsigned long long>(make_key(depth, id)));
}

/// Draws the box of one triangle by one thread. The edge values include their biases: a pixel is inside if no
/// sign bit is set.
template <typename Int>
__device__ __forceinline__ void raster_by_thread(const raster_args& a, const screen_triangle& t,
                                                 const pixel_box& box, Int area, u32 id) {
    const edge_functions<Int> e = edges_at<Int>(t, box.x0, box.y0);
    const depth_plane depth = make_depth(t, area);
    Int row0 = e.e[0] + e.bias[0], row1 = e.e[1] + e.bias[1], row2 = e.e[2] + e.bias[2];
    for (i32 y = box.y0; y <= box.y1; ++y) {
        Int e0 = row0, e1 = row1, e2 = row2;
        for (i32 x = box.x0; x <= box.x1; ++x) {
            if ((e0 | e1 | e2) >= 0)
                put(a, x, y,
                    depth_bits(depth, static_cast<f32>(e1 - e.bias[1]), static_cast<f32>(e2 - e.bias[2])),
                    id);
            e0 += e.step_x[0], e1 += e.step_x[1], e2 += e.step_x[2];
        }
        row0 += e.step_y[0], row1 += e.step_y[1], row2 += e.step_y[2];
    }
}

/// Draws the box of one triangle by a warp, 8 x 4 pixels at a time.
template <typename Int>
__device__ __forceinline__ void raster_by_warp(const raster_args& a, const screen_triangle& t,
                                               const pixel_box& box, Int area, u32 id) {
    const i32 lane = static_cast<i32>(threadIdx.x & 31U);
    edge_functions<Int> e = edges_at<Int>(t, box.x0, box.y0);
    const depth_plane depth = make_depth(t, area);
#pragma unroll
    for (int i = 0; i < 3; ++i)
        e.e[i] += static_cast<Int>(lane & 7) * e.step_x[i] + static_cast<Int>(lane >> 3) * e.step_y[i];
    for (i32 y = box.y0 + (lane >> 3); y <= box.y1; y += 4) {
        Int e0 = e.e[0], e1 = e.e[1], e2 = e.e[2];
        for (i32 x = box.x0 + (lane & 7); x <= box.x1; x += 8) {
            if (((e0 + e.bias[0]) | (e1 + e.bias[1]) | (e2 + e.bias[2])) >= 0) {
                put(a, x, y, depth_bits(depth, static_cast<f32>(e1), static_cast<f32>(e2)), id);
            }
            e0 += 8 * e.step_x[0], e1 += 8 * e.step_x[1], e2 += 8 * e.step_x[2];
        }
#pragma unroll
        for (int i = 0; i < 3; ++i) e.e[i] += 4 * e.step_y[i];
    }
}

/// Draws a sliver by a warp, with one lane per column of its box (one lane per row if the box is taller than
/// wide). In a column the edges enclose only a few pixels. The range of these pixels is found by division in
/// floats, accurate to 2^-8 of a pixel, and slightly enlarged; each pixel is then tested exactly. So the cost
/// of a sliver is proportional to its length, not to the area of its box.
__device__ __forceinline__ void raster_by_spans(const raster_args& a, const screen_triangle& t,
                                                const pixel_box& box, u32 id) {
    const edge_functions<i64> e = edges_at<i64>(t, box.x0, box.y0);
    const depth_plane depth = make_depth(t, double_area(t));
    const i32 columns = box.x1 - box.x0 + 1, rows = box.y1 - box.y0 + 1;
    const bool wide = columns >= rows;
    const i32 lines = wide ? columns : rows, last = (wide ? rows : columns) - 1;
    i64 at_first[3], next_line[3], next_pixel[3];
    f32 inverse[3];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        at_first[i] = e.e[i] + e.bias[i];
        next_line[i] = wide ? e.step_x[i] : e.step_y[i], next_pixel[i] = wide ? e.step_y[i] : e.step_x[i];
        inverse[i] = next_pixel[i] != 0 ? 1.0F / static_cast<f32>(next_pixel[i]) : 0.0F;
    }
    for (i32 line = static_cast<i32>(threadIdx.x & 31U); line < lines; line += 32) {
        f32 begin = 0.0F, end = static_cast<f32>(last);
        i64 w[3];
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            w[i] = at_first[i] + line * next_line[i];
            const f32 crossing = -static_cast<f32>(w[i]) * inverse[i];
            if (next_pixel[i] > 0) begin = max_(begin, crossing);
            if (next_pixel[i] < 0) end = min_(end, crossing);
        }
        if (begin > end + 1.0F) continue;  // this test also excludes values that do not fit into an i32
        const i32 from = to_i32(max_(begin - 0.1F, 0.0F)), to = min_(to_i32(end + 0.1F), last);
#pragma unroll
        for (int i = 0; i < 3; ++i) w[i] += from * next_pixel[i];
        for (i32 pixel = from; pixel <= to; ++pixel) {
            if ((w[0] | w[1] | w[2]) >= 0) {
                put(a, box.x0 + (wide ? line : pixel), box.y0 + (wide ? pixel : line),
                    depth_bits(depth, static_cast<f32>(w[1] - e.bias[1]), static_cast<f32>(w[2] - e.bias[2])),
                    id);
            }
            w[0] += next_pixel[0], w[1] += next_pixel[1], w[2] += next_pixel[2];
        }
    }
}

/// Returns entry `at` of the list. The entries at the list's front are counted first, then those at its back.
__device__ __forceinline__ u32 entry(const raster_args& a, u32 at, u32 small) {
    return at < small ? a.in.list[at] : a.in.list[a.id_limit - 1 - (at - small)];
}

}  // namespace
}  // namespace carousel::kernels::cuda
