#pragma once
// The steps that shade one pixel: barycentrics from clip positions, attributes, texture, light, sRGB. The
// steps are separate functions, so that the CPU can run each step over a row of pixels (vector code), and the
// GPU can run all steps of a pixel in one thread.

#include "kernels/body/srgb.hpp"
#include "kernels/body/transform.hpp"

namespace carousel::kernels::body {

/// Shading parameters of one picture, the same for all pixels.
struct shading {
    vec3 light;  ///< towards the light, unit length
    f32 ambient, exposure;
    u32 mode;              ///< scene_state::shading
    u32 wireframe;         ///< scene_state::wireframe
    f32 scale_x, scale_y;  ///< 2 / width, 2 / height
    u32 texture_width, texture_height;
    u32 mapped;       ///< 1 if there are mip levels or several textures; these are sampled as in mip.hpp
    u32 texel_count;  ///< number of texels of all textures together
    texture_record texture;  ///< the texture, if there is only one
};

[[nodiscard]] inline shading make_shading(const kernels::scene_state& s, u32 width, u32 height,
                                          const mesh_counts& mesh) {
    return {{s.light[0], s.light[1], s.light[2]},
            s.ambient,
            s.exposure,
            s.shading,
            s.wireframe,
            2.0F / static_cast<f32>(width),
            2.0F / static_cast<f32>(height),
            mesh.texture_width,
            mesh.texture_height,
            u32{mesh.texture_levels > 1 || mesh.texture_count > 1},
            static_cast<u32>(texture_texels(mesh)),
            describe_texture(mesh.texture_width, mesh.texture_height, mesh.texture_levels, 0)};
}

struct barycentrics {
    f32 a, b, c;
};

/// Perspective-correct barycentrics of the triangle's point that projects to a position of the picture (x
/// right, y up, in -1..1), computed from clip positions. The vector of the three barycentrics is orthogonal
/// to two vectors: one consists of the offsets of the three corners from the ray in x, the other of their
/// offsets in y. The formula is also valid for corners behind the eye, so a clipped triangle is shaded from
/// its original corners. The weights are clamped, because snapping may move the point slightly outside the
/// triangle.
[[nodiscard]] CAROUSEL_HD_INLINE barycentrics barycentrics_at(f32 x, f32 y, const clip_vertex& a,
                                                              const clip_vertex& b, const clip_vertex& c) {
    const f32 ax = fma_(-x, a.w, a.x), ay = fma_(-y, a.w, a.y);
    const f32 bx = fma_(-x, b.w, b.x), by = fma_(-y, b.w, b.y);
    const f32 cx = fma_(-x, c.w, c.x), cy = fma_(-y, c.w, c.y);
    // One of the two products is rounded, and the other one is part of a fused operation. The code specifies
    // which product is rounded, so the result is the same on every device.
    f32 la = fma_(bx, cy, -(cx * by)), lb = fma_(cx, ay, -(ax * cy)), lc = fma_(ax, by, -(bx * ay));
    const f32 inverse = 1.0F / (la + lb + lc);
    la = clamp_(la * inverse, 0.0F, 1.0F);
    lb = clamp_(lb * inverse, 0.0F, 1.0F);
    lc = clamp_(lc * inverse, 0.0F, 1.0F);
    const f32 sum = la + lb + lc;
    const bool usable = sum > 0.0F;
    const f32 rescale = 1.0F / (usable ? sum : 1.0F);
    return {usable ? la * rescale : 1.0F, lb * rescale, lc * rescale};
}

/// True if the edge between corners p and q is within 0.6 pixels of the position. The edge function is linear
/// over the picture, so the distance in pixels is its value divided by the length of its gradient per pixel.
/// The squared distance is compared, which avoids a square root.
[[nodiscard]] CAROUSEL_HD_INLINE bool near_edge(f32 x, f32 y, f32 step_x, f32 step_y, const clip_vertex& p,
                                                const clip_vertex& q) {
    const f32 px = fma_(-x, p.w, p.x), py = fma_(-y, p.w, p.y);
    const f32 qx = fma_(-x, q.w, q.x), qy = fma_(-y, q.w, q.y);
    const f32 value = fma_(px, qy, -(qx * py));
    const f32 along_x = fma_(q.w, p.y, -(p.w * q.y)) * step_x,
              along_y = fma_(p.w, q.x, -(q.w * p.x)) * step_y;
    return value * value < 0.36F * fma_(along_x, along_x, along_y * along_y);
}
/// Wireframe: each edge is drawn as a pale line, and the rest of the triangle at a quarter of its brightness.
[[nodiscard]] CAROUSEL_HD_INLINE u32 shade_wire(bool edge, u32 color) {
    return edge ? 0xfff0dcc8U : (color >> 2 & 0x3f3f3fU) | 0xff000000U;
}

[[nodiscard]] CAROUSEL_HD_INLINE f32 blend(const barycentrics& l, f32 a, f32 b, f32 c) {
    return fma_(l.a, a, fma_(l.b, b, l.c * c));
}

/// Normal in world space, not yet of unit length.
[[nodiscard]] CAROUSEL_HD_INLINE vec3 turn(const f32* model, vec3 n) {
    return {fma_(model[0], n.x, fma_(model[1], n.y, model[2] * n.z)),
            fma_(model[4], n.x, fma_(model[5], n.y, model[6] * n.z)),
            fma_(model[8], n.x, fma_(model[9], n.y, model[10] * n.z))};
}
[[nodiscard]] CAROUSEL_HD_INLINE vec3 normalised(vec3 n) {
    const f32 square = dot(n, n);
    const f32 inverse = 1.0F / sqrt_(square > 0.0F ? square : 1.0F);
    return {n.x * inverse, n.y * inverse, n.z * inverse};
}

/// The texels that a bilinear sample of a repeating texture reads: two columns, two rows, and the 8-bit
/// weights of the second column and row.
struct texel_footprint {
    u32 x0, x1, y0, y1, fraction_x, fraction_y;
};
/// Computes one axis of the footprint. The position is wrapped into the texture, converted to units of 1/256
/// texel, and reduced by half a texel. `size` is at most 16384, so the position has at most 23 bits and is
/// exact.
CAROUSEL_HD_INLINE void texel_axis(f32 u, u32 size, u32& first, u32& second, u32& fraction) {
    const f32 limited = clamp_(u, -4096.0F, 4096.0F);
    const f32 unit = limited - static_cast<f32>(floor_bounded_i32(limited));
    const i32 position = static_cast<i32>(unit * static_cast<f32>(size * 256U)) - 128;
    // the texel number -1 (the largest u32) means the last texel
    const u32 texel = static_cast<u32>(position >> 8), next = texel + 1U, last = size - 1U;
    fraction = static_cast<u32>(position) & 255U;
    first = min_(texel, last);
    second = next > last ? 0U : next;
}
[[nodiscard]] CAROUSEL_HD_INLINE texel_footprint footprint(f32 u, f32 v, u32 width, u32 height) {
    texel_footprint f{};
    texel_axis(u, width, f.x0, f.x1, f.fraction_x);
    texel_axis(v, height, f.y0, f.y1, f.fraction_y);
    return f;
}
/// Filters one channel (shift 0, 8 or 16) of four texels. Returns 0..1020, an index into srgb_tables::decode.
[[nodiscard]] CAROUSEL_HD_INLINE u32 filtered(u32 t00, u32 t10, u32 t01, u32 t11, u32 shift, u32 fx, u32 fy) {
    const u32 top = (t00 >> shift & 255U) * (256U - fx) + (t10 >> shift & 255U) * fx;
    const u32 bottom = (t01 >> shift & 255U) * (256U - fx) + (t11 >> shift & 255U) * fx;
    return (top * (256U - fy) + bottom * fy + 8192U) >> 14;
}

/// Lambert shading: returns the reflected fraction of the light, times the exposure.
[[nodiscard]] CAROUSEL_HD_INLINE f32 lambert(const shading& s, vec3 n) {
    return fma_(positive_(dot(n, s.light)), 1.0F - s.ambient, s.ambient) * s.exposure;
}
/// Index into srgb_tables::encode.
[[nodiscard]] CAROUSEL_HD_INLINE u32 encode_index(f32 linear) {
    return static_cast<u32>(static_cast<i32>(fma_(clamp_(linear, 0.0F, 1.0F), 4095.0F, 0.5F)));
}

[[nodiscard]] CAROUSEL_HD_INLINE u32 rgba(u32 r, u32 g, u32 b) { return r | g << 8 | b << 16 | 0xff000000U; }

[[nodiscard]] CAROUSEL_HD_INLINE u32 shade_normal(vec3 n) {
    return rgba(static_cast<u32>(to_i32(fma_(n.x, 127.0F, 127.5F))) & 255U,
                static_cast<u32>(to_i32(fma_(n.y, 127.0F, 127.5F))) & 255U,
                static_cast<u32>(to_i32(fma_(n.z, 127.0F, 127.5F))) & 255U);
}
/// Returns a colour that differs from triangle to triangle and is never dark.
[[nodiscard]] CAROUSEL_HD_INLINE u32 shade_id(u32 id) {
    return (hash_u32(id + 1U) >> 1 & 0x7f7f7fU) + 0xff606060U;
}
/// Returns a grey for the view depth; nearer pixels are brighter.
[[nodiscard]] CAROUSEL_HD_INLINE u32 shade_depth(f32 inverse_w) {
    const f32 near = inverse_w / (1.0F + inverse_w);  // 1 / (1 + w)
    const u32 grey =
        static_cast<u32>(to_i32(fma_(clamp_(fma_(near, 2.6F, -0.45F), 0.0F, 1.0F), 254.0F, 0.5F)));
    return rgba(grey, grey, grey);
}

/// The background: a vertical gradient, with an ordered 4x4 dither that avoids banding.
[[nodiscard]] CAROUSEL_HD_INLINE u32 background(u32 x, u32 y, u32 height) {
    // the pixel's element of the 4x4 Bayer matrix (0..15), computed by interleaving bits
    const u32 d = x ^ y;
    const u32 bayer = (d & 1U) << 3 | (y & 1U) << 2 | (d & 2U) | (y & 2U) >> 1;
    const u32 at = y * 4096U / height;  // the position in the gradient: 0 at the top, 4095 at the bottom
    const u32 threshold = bayer * 256U + 128U;
    const u32 r = ((52U * 4096U - at * 34U) + threshold) >> 12;
    const u32 g = ((62U * 4096U - at * 38U) + threshold) >> 12;
    const u32 b = ((80U * 4096U - at * 44U) + threshold) >> 12;
    return rgba(r, g, b);
}

/// Position of a pixel's centre in the picture, -1..1, y up.
[[nodiscard]] CAROUSEL_HD_INLINE f32 centre_x(const shading& s, u32 x) {
    return fma_(static_cast<f32>(x) + 0.5F, s.scale_x, -1.0F);
}
[[nodiscard]] CAROUSEL_HD_INLINE f32 centre_y(const shading& s, u32 y) {
    return -fma_(static_cast<f32>(y) + 0.5F, s.scale_y, -1.0F);
}

}  // namespace carousel::kernels::body
