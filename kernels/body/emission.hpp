#pragma once
// Light with a large range in 32 bits: red, green and blue of 9 bits with a common exponent of 5 bits, as
// GL_EXT_texture_shared_exponent. The largest value is 65408; the error is at most 1/512 of the largest
// channel.

#include "kernels/body/surface.hpp"

namespace carousel::kernels::body {

[[nodiscard]] CAROUSEL_HD_INLINE u32 pack_emission(vec3 c) {
    const f32 r = clamp_(c.x, 0.0F, 65408.0F), g = clamp_(c.y, 0.0F, 65408.0F),
              b = clamp_(c.z, 0.0F, 65408.0F);
    const f32 most = max_(r, max_(g, b));
    const i32 exponent = static_cast<i32>(bits_of(most) >> 23) - 127;
    i32 shared = max_(exponent, -16) + 16;
    // 2^(24 - shared): the numbers of the channels are below 512 with this scale
    f32 scale = float_of(static_cast<u32>(127 + 24 - shared) << 23);
    if (to_i32(fma_(most, scale, 0.5F)) > 511) {
        scale *= 0.5F;
        shared += 1;
    }
    const auto part = [scale](f32 x) { return static_cast<u32>(to_i32(fma_(x, scale, 0.5F))); };
    return part(r) | part(g) << 9 | part(b) << 18 | static_cast<u32>(shared) << 27;
}
[[nodiscard]] CAROUSEL_HD_INLINE vec3 unpack_emission(u32 packed) {
    const f32 unit = float_of((127U - 24U + (packed >> 27)) << 23);
    return {static_cast<f32>(packed & 511U) * unit, static_cast<f32>(packed >> 9 & 511U) * unit,
            static_cast<f32>(packed >> 18 & 511U) * unit};
}

}  // namespace carousel::kernels::body
