#pragma once
// Matrices: camera and projection (host, once per frame, in double), products and model matrices (anywhere).
// Row-major. A clip matrix has three rows, which compute x, y and w (the view depth). Depth is 1/w, so no row
// for z and no far plane are needed.

#include "kernels/body/fixed_math.hpp"
#include "kernels/scene.hpp"
#include "kernels/triangle_layout.hpp"

namespace carousel::kernels::body {

struct matrix34 {
    f32 m[12];
};

/// View and projection of a camera. With a degenerate camera (eye = target, or up along the view) the matrix
/// contains NaN, and nothing is drawn.
[[nodiscard]] inline matrix34 view_projection(const kernels::camera_state& c, u32 width, u32 height) {
    const f64 forward0[3] = {f64(c.target[0]) - c.eye[0], f64(c.target[1]) - c.eye[1],
                             f64(c.target[2]) - c.eye[2]};
    f64 f[3], r[3], u[3];
    const f64 fl = sqrt_(forward0[0] * forward0[0] + forward0[1] * forward0[1] + forward0[2] * forward0[2]);
    for (int i = 0; i < 3; ++i) f[i] = forward0[i] / fl;
    r[0] = f[1] * c.up[2] - f[2] * c.up[1];
    r[1] = f[2] * c.up[0] - f[0] * c.up[2];
    r[2] = f[0] * c.up[1] - f[1] * c.up[0];
    const f64 rl = sqrt_(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    for (f64& x : r) x /= rl;
    u[0] = r[1] * f[2] - r[2] * f[1];
    u[1] = r[2] * f[0] - r[0] * f[2];
    u[2] = r[0] * f[1] - r[1] * f[0];
    const sine_cosine half = sine_and_cosine(0.5 * c.fov_y);
    const f64 sy = half.cosine / half.sine;
    const f64 sx = sy * height / width;
    matrix34 out{};
    for (int i = 0; i < 3; ++i) {
        out.m[i] = static_cast<f32>(sx * r[i]);
        out.m[4 + i] = static_cast<f32>(sy * u[i]);
        out.m[8 + i] = static_cast<f32>(f[i]);
    }
    out.m[3] = static_cast<f32>(-sx * (r[0] * c.eye[0] + r[1] * c.eye[1] + r[2] * c.eye[2]));
    out.m[7] = static_cast<f32>(-sy * (u[0] * c.eye[0] + u[1] * c.eye[1] + u[2] * c.eye[2]));
    const f64 away = f[0] * c.eye[0] + f[1] * c.eye[1] + f[2] * c.eye[2];
    out.m[11] = static_cast<f32>(-away);
    if (c.jitter[0] == 0.0F && c.jitter[1] == 0.0F) return out;
    // x / w grows by 2 / width per pixel, y / w by -2 / height
    const f64 jx = 2.0 * c.jitter[0] / width, jy = -2.0 * c.jitter[1] / height;
    for (int i = 0; i < 3; ++i) {
        out.m[i] = static_cast<f32>(sx * r[i] + jx * f[i]);
        out.m[4 + i] = static_cast<f32>(sy * u[i] + jy * f[i]);
    }
    out.m[3] = static_cast<f32>(-sx * (r[0] * c.eye[0] + r[1] * c.eye[1] + r[2] * c.eye[2]) - jx * away);
    out.m[7] = static_cast<f32>(-sy * (u[0] * c.eye[0] + u[1] * c.eye[1] + u[2] * c.eye[2]) - jy * away);
    return out;
}

/// Element `i` (0..11) of a 3x4 matrix times an affine 4x4 model matrix.
[[nodiscard]] CAROUSEL_HD_INLINE f32 product_element(const matrix34& a, const f32* model, u32 i) {
    const u32 row = i / 4, column = i % 4;
    const f32* r = a.m + row * 4;
    const f32 sum = fma_(r[0], model[column], fma_(r[1], model[4 + column], r[2] * model[8 + column]));
    return column == 3 ? sum + r[3] : sum;
}

/// Model matrix of instance `index` of `count`: each instance has its own place in a square grid, and rotates
/// about y with its own phase.
CAROUSEL_HD_INLINE void model_matrix(u64 frame_number, f32 spin, u32 index, u32 count, f32 spacing,
                                     f32* out) {
    u32 side = 1;
    while (side * side < count) ++side;
    const sine_cosine t = sine_and_cosine(static_cast<f64>(frame_number) * spin + 0.7 * index);
    const f32 s = static_cast<f32>(t.sine), c = static_cast<f32>(t.cosine);
    const f32 middle = 0.5F * static_cast<f32>(side - 1);
    const f32 x = (static_cast<f32>(index % side) - middle) * spacing;
    const f32 z = -static_cast<f32>(index / side) * spacing;
    const f32 m[16] = {c, 0, s, x, 0, 1, 0, 0, -s, 0, c, z, 0, 0, 0, 1};
    for (int i = 0; i < 16; ++i) out[i] = m[i];
}

/// Model matrix of instance `index` of a field (arrangement::field). Vogel's spiral: successive instances
/// differ by the golden angle, and the radius is proportional to the square root of the index.
CAROUSEL_HD_INLINE void field_matrix(u64 frame_number, f32 spin, u32 index, f32 spacing, f32* out) {
    const auto random = [index](u32 what) {
        return hash_u32(hash_u32(index + 1U) ^ (what * 0x9e3779b9U)) * (1.0 / 4294967296.0);
    };
    const f64 radius = 0.62 * spacing * sqrt_(static_cast<f64>(index));
    const f64 turn = static_cast<f64>(frame_number) * spin;
    const sine_cosine at = sine_and_cosine(2.39996322972865332 * index),
                      wave = sine_and_cosine(0.8 * radius - 1.5 * turn);
    // The instance's axis; the axes of all instances are distributed uniformly over the sphere.
    const f64 up = 2.0 * random(0) - 1.0, flat = sqrt_(1.0 - up * up);
    const sine_cosine around = sine_and_cosine(6.28318530717958648 * random(1));
    const f64 a[3] = {flat * around.cosine, up, flat * around.sine};
    const sine_cosine t = sine_and_cosine(turn * (0.5 + random(2)) + 6.28318530717958648 * random(3));
    const f64 rest = 1.0 - t.cosine, scale = 0.7 + 0.5 * random(4);
    // Rodrigues' formula, scaled
    const f64 r[9] = {t.cosine + a[0] * a[0] * rest,      a[0] * a[1] * rest - a[2] * t.sine,
                      a[0] * a[2] * rest + a[1] * t.sine, a[1] * a[0] * rest + a[2] * t.sine,
                      t.cosine + a[1] * a[1] * rest,      a[1] * a[2] * rest - a[0] * t.sine,
                      a[2] * a[0] * rest - a[1] * t.sine, a[2] * a[1] * rest + a[0] * t.sine,
                      t.cosine + a[2] * a[2] * rest};
    const f64 place[3] = {radius * at.cosine, 0.25 * spacing * wave.sine, radius * at.sine};
    for (u32 i = 0; i < 3; ++i) {
        for (u32 k = 0; k < 3; ++k) out[4 * i + k] = static_cast<f32>(scale * r[3 * i + k]);
        out[4 * i + 3] = static_cast<f32>(place[i]);
    }
    out[12] = out[13] = out[14] = 0.0F;
    out[15] = 1.0F;
}

}  // namespace carousel::kernels::body
