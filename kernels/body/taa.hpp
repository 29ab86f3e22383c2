#pragma once
// Temporal anti-aliasing (Karis 2014; Yang, Liu and Salvi 2020): each frame is drawn with a camera that is
// moved by a part of a pixel, and is mixed with the pictures before it, each pixel from the place at which
// its surface was then (motion_before.hpp).

#include "kernels/body/motion_before.hpp"
#include "kernels/body/sky.hpp"
#include "kernels/body/transform.hpp"
#include "kernels/looks.hpp"

namespace carousel::kernels::body {

/// The camera's offset in frame `frame_number`, in pixels to the right and down, -0.5 to 0.5: Halton's
/// sequence with the bases 2 and 3, which repeats after jitter_length frames.
inline constexpr u32 jitter_length = 16;
struct jitter_offset {
    f32 x, y;
};
[[nodiscard]] inline jitter_offset jitter_at(u64 frame_number) {
    const auto radical_inverse = [](u32 n, u32 base) {
        f64 value = 0.0, part = 1.0;
        for (; n > 0; n /= base) {
            part /= base;
            value += part * (n % base);
        }
        return static_cast<f32>(value - 0.5);
    };
    const u32 n = 1 + static_cast<u32>(frame_number % jitter_length);
    return {radical_inverse(n, 2), radical_inverse(n, 3)};
}

struct taa_pass {
    taa_args a;
    camera_rays rays;  ///< of the jittered camera
    matrix34 view;     ///< world to clip space, without jitter
    surface_motion motion;
    f32 scale_x, scale_y;
};
[[nodiscard]] inline taa_pass make_taa_pass(const taa_args& args) {
    camera_state still = args.scene.camera;
    still.jitter[0] = still.jitter[1] = 0.0F;
    return {args,
            make_rays(args.scene.camera, args.width, args.height),
            view_projection(still, args.width, args.height),
            view_motion(args.motion),
            2.0F / static_cast<f32>(args.width),
            2.0F / static_cast<f32>(args.height)};
}

[[nodiscard]] CAROUSEL_HD_INLINE vec3 least_of(vec3 a, vec3 b) {
    return {min_(a.x, b.x), min_(a.y, b.y), min_(a.z, b.z)};
}
[[nodiscard]] CAROUSEL_HD_INLINE vec3 greatest_of(vec3 a, vec3 b) {
    return {max_(a.x, b.x), max_(a.y, b.y), max_(a.z, b.z)};
}

/// A pixel of the frame and what surrounds it: 3 x 3 pixels, limited to the picture.
struct neighbourhood {
    vec3 here, low, high;
    vec3 mean, deviation;  ///< of the nine pixels' light
    i32 x, y;   ///< the pixel with the nearest surface, whose motion this one follows: edges move as a whole
    f32 depth;  ///< of that surface; 0: none
};
[[nodiscard]] CAROUSEL_HD_INLINE neighbourhood neighbourhood_of(const taa_pass& p, i32 x, i32 y) {
    const i32 right = static_cast<i32>(p.a.width) - 1, bottom = static_cast<i32>(p.a.height) - 1;
    neighbourhood n{};
    n.here = load_color(p.a.radiance + 4 * (static_cast<u64>(y) * p.a.width + static_cast<u32>(x)));
    n.low = n.high = n.here;
    vec3 sum{}, squares{};
    n.x = x, n.y = y;
    n.depth = p.a.depth[static_cast<u64>(y) * p.a.width + static_cast<u32>(x)];
    for (i32 k = 0; k < 9; ++k) {
        const i32 nx = min_(max_(x + k % 3 - 1, 0), right), ny = min_(max_(y + k / 3 - 1, 0), bottom);
        const u64 at = static_cast<u64>(ny) * p.a.width + static_cast<u32>(nx);
        const vec3 c = load_color(p.a.radiance + 4 * at);
        n.low = least_of(n.low, c), n.high = greatest_of(n.high, c);
        sum = sum + c, squares = squares + c * c;
        const f32 depth = p.a.depth[at];
        const bool nearer = depth > n.depth;
        n.x = nearer ? nx : n.x, n.y = nearer ? ny : n.y, n.depth = nearer ? depth : n.depth;
    }
    n.mean = sum * (1.0F / 9.0F);
    const vec3 variance = squares * (1.0F / 9.0F) - n.mean * n.mean;
    n.deviation = {sqrt_(positive_(variance.x)), sqrt_(positive_(variance.y)), sqrt_(positive_(variance.z))};
    return n;
}

/// Where the history has this pixel, in pixels from its corner; `seen`: it has it.
struct history_place {
    f32 x, y;
    bool seen;
    bool moves;  ///< its surface has moved
};
[[nodiscard]] CAROUSEL_HD_INLINE history_place history_place_of(const taa_pass& p, const neighbourhood& n,
                                                                f32 x, f32 y) {
    const f32 fx = static_cast<f32>(n.x) + 0.5F, fy = static_cast<f32>(n.y) + 0.5F;
    const vec3 ray = ray_at(p.rays, fma_(fx, p.scale_x, -1.0F), -fma_(fy, p.scale_y, -1.0F));
    const f32* const m = p.a.before;
    const u64 at = static_cast<u64>(n.y) * p.a.width + static_cast<u32>(n.x);
    const point_before point = point_before_of(p.motion, at, along(p.rays.eye, ray, 1.0F / n.depth));
    clip_vertex c = to_clip(m, point.at);
    if (!(n.depth > 0.0F))  // the sky is infinitely far away: only rotations move it
        c = {fma_(m[0], ray.x, fma_(m[1], ray.y, m[2] * ray.z)),
             fma_(m[4], ray.x, fma_(m[5], ray.y, m[6] * ray.z)),
             fma_(m[8], ray.x, fma_(m[9], ray.y, m[10] * ray.z))};
    const f32 inverse = 1.0F / c.w, width = static_cast<f32>(p.a.width),
              height = static_cast<f32>(p.a.height);
    const f32 then_x = fma_(c.x * inverse, 0.5F, 0.5F) * width,
              then_y = fma_(-(c.y * inverse), 0.5F, 0.5F) * height;
    // The history is a picture without jitter, and so is the place (fx - jitter) of the surface today.
    const f32 hx = x + 0.5F + (then_x - (fx - p.a.scene.camera.jitter[0])),
              hy = y + 0.5F + (then_y - (fy - p.a.scene.camera.jitter[1]));
    const u32 seen = u32{point.seen} & u32{c.w > 0.0F} & u32{hx > 0.0F} & u32{hy > 0.0F} & u32{hx < width} &
                     u32{hy < height};
    return {hx, hy, seen != 0, point.moves};
}

/// The history between pixels: light, and the number of frames in it.
struct remembered {
    vec3 light;
    f32 frames;
};
/// Weights of four pixels in a row, of which the second one is `t` before the place: Catmull-Rom, which blurs
/// less than a linear filter.
struct cubic_weights {
    f32 w[4];
};
[[nodiscard]] CAROUSEL_HD_INLINE cubic_weights cubic_weights_at(f32 t) {
    return {{t * fma_(t, fma_(t, -0.5F, 1.0F), -0.5F), fma_(t * t, fma_(t, 1.5F, -2.5F), 1.0F),
             t * fma_(t, fma_(t, -1.5F, 2.0F), 0.5F), t * t * fma_(t, 0.5F, -0.5F)}};
}
[[nodiscard]] CAROUSEL_HD_INLINE remembered remembered_at(const taa_pass& p, const history_place& h) {
    const i32 right = static_cast<i32>(p.a.width) - 1, bottom = static_cast<i32>(p.a.height) - 1;
    // NaN becomes 0
    const f32 tx = clamp_(h.x - 0.5F, 0.0F, static_cast<f32>(right)),
              ty = clamp_(h.y - 0.5F, 0.0F, static_cast<f32>(bottom));
    const i32 x = static_cast<i32>(tx), y = static_cast<i32>(ty);
    const cubic_weights across = cubic_weights_at(tx - static_cast<f32>(x)),
                        down = cubic_weights_at(ty - static_cast<f32>(y));
    remembered sum{};
    for (i32 row = 0; row < 4; ++row) {
        const f32* const line =
            p.a.history + 4 * static_cast<u64>(min_(max_(y + row - 1, 0), bottom)) * p.a.width;
        remembered of_row{};
        for (i32 column = 0; column < 4; ++column) {
            const f32* const from = line + 4 * min_(max_(x + column - 1, 0), right);
            of_row.light = along(of_row.light, load_color(from), across.w[column]);
            of_row.frames = fma_(from[3], across.w[column], of_row.frames);
        }
        sum.light = along(sum.light, of_row.light, down.w[row]);
        sum.frames = fma_(of_row.frames, down.w[row], sum.frames);
    }
    return sum;
}

CAROUSEL_HD_INLINE void store_remembered(f32* at, const remembered& r) {
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<float4*>(at) = {r.light.x, r.light.y, r.light.z, r.frames};
#else
    at[0] = r.light.x, at[1] = r.light.y, at[2] = r.light.z, at[3] = r.frames;
#endif
}

/// A moving pixel has at most this number of frames: reading the history between its pixels loses detail each
/// time, and light on what moves changes.
inline constexpr f32 moving_frames = 2.0F;

/// The mean of the last frames. History that is far from the colours around the pixel belongs to something
/// that is no longer there, and is limited. What stands still in the picture has the range of these colours,
/// widened by a quarter, because one sample per pixel does not have all colours of its surroundings. What
/// moves has the part of the range that is within the deviation from the mean (Salvi 2016).
CAROUSEL_HD_INLINE void taa_pixel(const taa_pass& p, u32 x, u32 y) {
    if (x == 0 && y == 0)
        for (u32 i = 0; i < 12; ++i) p.a.after[i] = p.view.m[i];
    const u64 at = static_cast<u64>(y) * p.a.width + x;
    store_motion(p.motion, at, u64{p.a.width} * p.a.height);
    const neighbourhood n = neighbourhood_of(p, static_cast<i32>(x), static_cast<i32>(y));
    const history_place h = history_place_of(p, n, static_cast<f32>(x), static_cast<f32>(y));
    const remembered before = remembered_at(p, h);
    const f32 moved =
        max_(abs_(h.x - (static_cast<f32>(x) + 0.5F)), abs_(h.y - (static_cast<f32>(y) + 0.5F)));
    // 1 up to a hundredth of a pixel, 0 from a twentieth on; 0 for what turns, as its light changes
    const f32 still = h.seen && !h.moves ? clamp_(fma_(moved, -25.0F, 1.25F), 0.0F, 1.0F) : 0.0F;
    const vec3 more = (n.high - n.low) * 0.25F;
    const vec3 low = mix(greatest_of(n.low, n.mean - n.deviation), n.low - more, still),
               high = mix(least_of(n.high, n.mean + n.deviation), n.high + more, still);
    const vec3 likely = least_of(greatest_of(before.light, low), high);
    const f32 most = static_cast<f32>(p.a.frames), of_moving = min_(moving_frames, most);
    const f32 frames = h.seen ? clamp_(before.frames, 0.0F, mix(of_moving, most, still) - 1.0F) : 0.0F;
    const vec3 now = mix(likely, n.here, 1.0F / (frames + 1.0F));
    store_color(p.a.out + 4 * at, now);
    store_remembered(p.a.next + 4 * at, {now, frames + 1.0F});
}

}  // namespace carousel::kernels::body
