#pragma once
// Procedural meshes. Vertex `i` and triangle `i` of each shape are computed only from the number `i`, so
// every device produces the same bytes, in any order and for any part of the block.

#include "kernels/body/fixed_math.hpp"
#include "kernels/kernels.hpp"

namespace carousel::kernels::body {

// The height field of the fractal terrain: an island made of value noise, computed in double without library
// functions.

[[nodiscard]] CAROUSEL_HD_INLINE f64 lerp_(f64 a, f64 b, f64 t) { return a + (b - a) * t; }
[[nodiscard]] CAROUSEL_HD_INLINE f64 unit_(f64 x) { return x < 0.0 ? 0.0 : (x > 1.0 ? 1.0 : x); }
/// Returns 0 if x is before `from`, 1 if x is after `to`, and a smooth transition between them (also for from
/// > to).
[[nodiscard]] CAROUSEL_HD_INLINE f64 smooth_(f64 from, f64 to, f64 x) {
    const f64 t = unit_((x - from) / (to - from));
    return t * t * (3.0 - 2.0 * t);
}

/// Value noise in 0..1 with lattice spacing 1; the interpolation between the lattice points is quintic.
[[nodiscard]] CAROUSEL_HD_INLINE f64 lattice_noise(f64 x, f64 y, u32 seed) {
    const f64 sx = x + 65536.0, sy = y + 65536.0;  // both numbers are positive, so truncation is the same as
                                                   // floor
    const u32 ix = static_cast<u32>(sx), iy = static_cast<u32>(sy);
    const f64 fx = sx - ix, fy = sy - iy;
    const f64 u = fx * fx * fx * (fx * (fx * 6.0 - 15.0) + 10.0),
              v = fy * fy * fy * (fy * (fy * 6.0 - 15.0) + 10.0);
    f64 corner[4];
    for (u32 i = 0; i < 4; ++i)
        corner[i] =
            hash_u32((ix + (i & 1U)) * 0x9e3779b9U + hash_u32(iy + (i >> 1) + seed)) * (1.0 / 4294967296.0);
    return lerp_(lerp_(corner[0], corner[1], u), lerp_(corner[2], corner[3], u), v);
}

/// Height above the sea, about -0.15 .. 1, on a disc of radius 1.
[[nodiscard]] CAROUSEL_HD_INLINE f64 island_height(f64 x, f64 z) {
    f64 ridges = 0.0, hills = 0.0, amplitude = 0.5, frequency = 2.1;
    for (u32 octave = 0; octave < 8; ++octave) {
        const f64 n = lattice_noise(x * frequency, z * frequency, octave * 977U + 11U);
        const f64 centred = 2.0 * n - 1.0;
        const f64 ridge = 1.0 - (centred < 0.0 ? -centred : centred);
        ridges += amplitude * ridge * ridge;
        hills += amplitude * n;
        amplitude *= 0.47;
        frequency *= 2.03;
    }
    const f64 distance = sqrt_(x * x + z * z);
    const f64 shore = smooth_(1.02, 0.25, distance + 0.25 * (hills - 0.5));
    return shore * (0.25 * hills + 0.85 * ridges * ridges * smooth_(0.05, 0.75, shore)) * 1.15 - 0.085;
}

inline constexpr f64 pi = 3.14159265358979323846;

/// A shape's grid. The shape consists of `parts` patches, each of nu x nv quads. The soup, the slivers and
/// the stacks consist of `parts` triangles or quads.
struct shape_grid {
    mesh_shape shape;
    u32 nu, nv, parts;
};

[[nodiscard]] CAROUSEL_HD_INLINE shaded_vertex make_vertex(vec3 position, vec3 normal, f64 u, f64 v) {
    return {{position.x, position.y, position.z},
            {normal.x, normal.y, normal.z},
            {static_cast<f32>(u), static_cast<f32>(v)}};
}

[[nodiscard]] CAROUSEL_HD_INLINE vec3 to_vec3(f64 x, f64 y, f64 z) {
    return {static_cast<f32>(x), static_cast<f32>(y), static_cast<f32>(z)};
}
[[nodiscard]] CAROUSEL_HD_INLINE vec3 to_unit(f64 x, f64 y, f64 z) {
    const f64 square = x * x + y * y + z * z;
    const f64 inverse = 1.0 / sqrt_(square > 0.0 ? square : 1.0);
    return to_vec3(x * inverse, y * inverse, z * inverse);
}

/// The shape of the benchmark scene: the point d (1 + 0.05 sin 9a sin 7b), with the normal d.
[[nodiscard]] CAROUSEL_HD_INLINE shaded_vertex sphere_vertex(const shape_grid& g, u32 u, u32 v) {
    const f64 a = 2.0 * pi * (u % g.nu) / g.nu, b = pi * v / g.nv;
    const sine_cosine sa = sine_and_cosine(a), sb = sine_and_cosine(b);
    const f64 x = sb.sine * sa.cosine, y = sb.cosine, z = sb.sine * sa.sine;
    const f64 r = 1.0 + 0.05 * sine_and_cosine(9.0 * a).sine * sine_and_cosine(7.0 * b).sine;
    return make_vertex(to_vec3(x * r, y * r, z * r), to_vec3(x, y, z), static_cast<f64>(u) / g.nu,
                       static_cast<f64>(v) / g.nv);
}

/// A square grid that is mapped to a disc; the sea has a constant height.
[[nodiscard]] CAROUSEL_HD_INLINE shaded_vertex terrain_vertex(const shape_grid& g, u32 u, u32 v) {
    const f64 gx = 2.0 * u / g.nu - 1.0, gz = 1.0 - 2.0 * v / g.nv;
    const f64 x = gx * sqrt_(1.0 - 0.5 * gz * gz), z = gz * sqrt_(1.0 - 0.5 * gx * gx);
    const f64 radius = 1.4, height = 0.85, step = 1.0 / 700.0;
    f64 h[4];
    for (u32 i = 0; i < 4; ++i) {
        const f64 s = (i & 1U) ? step : -step;
        const f64 at = i < 2 ? island_height(x + s, z) : island_height(x, z + s);
        h[i] = at > 0.0 ? at : 0.0;
    }
    const f64 here = island_height(x, z);
    const f64 slope = height / (2.0 * step * radius);
    return make_vertex(to_vec3(x * radius, (here > 0.0 ? here * height : 0.0) - 0.46, z * radius),
                       to_unit(-(h[1] - h[0]) * slope, 1.0, -(h[3] - h[2]) * slope), 0.5 + 0.5 * x,
                       0.5 + 0.5 * z);
}

/// Two interlocked (2, 3) torus knots: the curve lies on a torus, and the torus normal is the tube's first
/// axis.
[[nodiscard]] CAROUSEL_HD_INLINE shaded_vertex knot_vertex(const shape_grid& g, u32 knot, u32 u, u32 v) {
    const f64 p = 2.0, q = 3.0, major = 0.58, minor = 0.27, tube = 0.105;
    const f64 t = 2.0 * pi * (u % g.nu) / g.nu, s = 2.0 * pi * (v % g.nv) / g.nv;
    const sine_cosine sp = sine_and_cosine(p * t + knot * (pi / 3.0)), sq = sine_and_cosine(q * t),
                      ss = sine_and_cosine(s);
    const f64 ring = major + minor * sq.cosine;
    const f64 n[3] = {sq.cosine * sp.cosine, sq.cosine * sp.sine, sq.sine};
    f64 d[3] = {-p * ring * sp.sine - minor * q * sq.sine * sp.cosine,
                p * ring * sp.cosine - minor * q * sq.sine * sp.sine, minor * q * sq.cosine};
    const f64 inverse = 1.0 / sqrt_(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    for (f64& x : d) x *= inverse;
    const f64 b[3] = {d[1] * n[2] - d[2] * n[1], d[2] * n[0] - d[0] * n[2], d[0] * n[1] - d[1] * n[0]};
    f64 r[3];
    for (int i = 0; i < 3; ++i) r[i] = ss.cosine * n[i] - ss.sine * b[i];
    return make_vertex(
        to_vec3(ring * sp.cosine + tube * r[0], ring * sp.sine + tube * r[1], minor * sq.sine + tube * r[2]),
        to_unit(r[0], r[1], r[2]), static_cast<f64>(u) / g.nu * 9.0, knot == 0 ? 0.25 : 0.75);
}

[[nodiscard]] CAROUSEL_HD_INLINE f64 random_unit(u32 i, u32 what) {
    return hash_u32(hash_u32(i + 1U) ^ (what * 0x9e3779b9U)) * (1.0 / 4294967296.0);
}

/// Triangles of eight sizes (up to seven halvings) and random directions, for tests of overdraw and tiers.
[[nodiscard]] CAROUSEL_HD_INLINE shaded_vertex soup_vertex(u32 triangle, u32 corner) {
    f64 size = 0.6;
    for (u32 i = 0, n = static_cast<u32>(8.0 * random_unit(triangle, 3)); i < n; ++i) size *= 0.5;
    f64 p[3][3];
    for (u32 c = 0; c < 3; ++c) {
        for (u32 k = 0; k < 3; ++k) {
            p[c][k] = 1.7 * (random_unit(triangle, k) - 0.5) +
                      size * (2.0 * random_unit(triangle, 8 + 3 * c + k) - 1.0);
        }
    }
    f64 e[3], f[3];
    for (u32 k = 0; k < 3; ++k) e[k] = p[1][k] - p[0][k], f[k] = p[2][k] - p[0][k];
    return make_vertex(
        to_vec3(p[corner][0], p[corner][1], p[corner][2]),
        to_unit(e[1] * f[2] - e[2] * f[1], e[2] * f[0] - e[0] * f[2], e[0] * f[1] - e[1] * f[0]),
        random_unit(triangle, 20), random_unit(triangle, 21));
}

/// Triangles that cross the view in all directions. They are two units long and at most 0.004 units wide,
/// which is about a pixel when the whole scene is in view.
[[nodiscard]] CAROUSEL_HD_INLINE shaded_vertex sliver_vertex(u32 triangle, u32 corner) {
    const sine_cosine way = sine_and_cosine(2.0 * pi * random_unit(triangle, 0));
    const f64 along = corner == 0 ? -1.0 : 1.0, across = corner == 0 ? 0.0 : (corner == 1 ? -0.002 : 0.002);
    const f64 x = 2.4 * (random_unit(triangle, 1) - 0.5), y = 1.6 * (random_unit(triangle, 2) - 0.5),
              z = random_unit(triangle, 3) - 0.5;
    return make_vertex(
        to_vec3(x + along * way.cosine - across * way.sine, y + along * way.sine + across * way.cosine, z),
        to_vec3(0.0, 0.0, 1.0), random_unit(triangle, 20), random_unit(triangle, 21));
}

/// Quads larger than the view, so that every quad covers every pixel. Quad 0 is the farthest.
[[nodiscard]] CAROUSEL_HD_INLINE shaded_vertex stack_vertex(const shape_grid& g, u32 quad, u32 corner) {
    const f64 x = (corner & 1U) ? 3.0 : -3.0, y = (corner & 2U) ? -3.0 : 3.0;
    const f64 z = -1.0 + 1.8 * (quad + 0.5) / g.parts;
    return make_vertex(to_vec3(x, y, z + 0.02 * x * (1.0 / 3.0)), to_vec3(0.0, 0.0, 1.0),
                       0.5 + x / 6.0 + 0.13 * quad, 0.5 - y / 6.0);
}

[[nodiscard]] CAROUSEL_HD_INLINE shaded_vertex vertex_of(const shape_grid& g, u32 i) {
    const u32 row = g.nu + 1, patch = row * (g.nv + 1);
    switch (g.shape) {
        case mesh_shape::bumpy_sphere:
            return sphere_vertex(g, i % row, i / row);
        case mesh_shape::fractal_terrain:
            return terrain_vertex(g, i % row, i / row);
        case mesh_shape::torus_knots:
            return knot_vertex(g, i / patch, i % patch % row, i % patch / row);
        case mesh_shape::quad_stack:
            return stack_vertex(g, i / 4, i % 4);
        case mesh_shape::quad_stack_front_first:
            return stack_vertex(g, g.parts - 1 - i / 4, i % 4);
        case mesh_shape::long_slivers:
            return sliver_vertex(i / 3, i % 3);
        default:
            return soup_vertex(i / 3, i % 3);
    }
}

struct index_triple {
    u32 a, b, c;
};
/// Returns the position of quad `at` of a patch. The quads are numbered tile by tile, in tiles of 8 x 8 quads
/// (fewer at the ends), so that the triangles of a cluster are adjacent and share vertices.
struct quad_place {
    u32 u, v;
};
[[nodiscard]] CAROUSEL_HD_INLINE quad_place place_of_quad(const shape_grid& g, u32 at) {
    constexpr u32 side = 8;
    const u32 top = at / (g.nu * side) * side, in_rows = at - top * g.nu, rows = min_(side, g.nv - top);
    const u32 left = in_rows / (rows * side) * side, in_tile = in_rows - left * rows,
              columns = min_(side, g.nu - left);
    return {left + in_tile % columns, top + in_tile / columns};
}

/// Each quad is split into the triangles (a, b, c) and (b, d, c), as the benchmark scene requires.
[[nodiscard]] CAROUSEL_HD_INLINE index_triple triangle_of(const shape_grid& g, u32 i) {
    if (g.shape == mesh_shape::triangle_soup || g.shape == mesh_shape::long_slivers)
        return {3 * i, 3 * i + 1, 3 * i + 2};
    const u32 quad = i / 2;
    u32 a, below;
    if (g.shape == mesh_shape::quad_stack || g.shape == mesh_shape::quad_stack_front_first) {
        a = quad * 4, below = a + 2;
        return (i & 1U) ? index_triple{a + 1, below, below + 1} : index_triple{a, below, a + 1};
    }
    const u32 part = quad / (g.nu * g.nv), at = quad % (g.nu * g.nv);
    const quad_place q = place_of_quad(g, at);
    a = part * (g.nu + 1) * (g.nv + 1) + q.v * (g.nu + 1) + q.u;
    below = a + g.nu + 1;
    return (i & 1U) ? index_triple{a + 1, below + 1, below} : index_triple{a, a + 1, below};
}

}  // namespace carousel::kernels::body
