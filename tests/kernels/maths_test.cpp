// The arithmetic under the kernels against the C library's.
#include <cmath>
#include <limits>

#include "kernels/body/clip.hpp"
#include "kernels/body/shade.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::body;

TEST_CASE("Own sine and cosine agree with the C library's to 1e-9 over many turns") {
    for (f64 x = -4000.0; x < 4000.0; x += 0.1237) {
        const sine_cosine s = sine_and_cosine(x);
        REQUIRE(std::abs(s.sine - std::sin(x)) < 1e-9);
        REQUIRE(std::abs(s.cosine - std::cos(x)) < 1e-9);
    }
    REQUIRE(std::abs(sine_and_cosine(1.0e6).sine - std::sin(1.0e6)) < 1e-8);
}

TEST_CASE("Rounding and flooring within their bounds, and conversion of every float, are as defined") {
    for (const f32 x :
         {-2.5F, -1.5F, -0.51F, -0.5F, -0.49F, 0.0F, 0.49999997F, 0.5F, 1.5F, 8388607.5F, -8388607.5F}) {
        REQUIRE(round_bounded_i32(x) == static_cast<i32>(std::floor(static_cast<f64>(x) + 0.5)));
        REQUIRE(floor_bounded_i32(x) == static_cast<i32>(std::floor(x)));
    }
    const f32 nan = std::numeric_limits<f32>::quiet_NaN(), inf = std::numeric_limits<f32>::infinity();
    REQUIRE(to_i32(nan) == -1073741824);
    REQUIRE(to_i32(inf) == 1073741824);
    REQUIRE(to_i32(-inf) == -1073741824);
    REQUIRE_FALSE(is_finite(nan));
    REQUIRE_FALSE(is_finite(-inf));
    REQUIRE(is_finite(std::numeric_limits<f32>::max()));
    REQUIRE(clamp_(nan, 0.0F, 1.0F) == 0.0F);
}

TEST_CASE("The sRGB tables are the standard's curve and invert each other") {
    static constexpr srgb_tables t = make_srgb_tables();
    for (u32 i = 0; i < decode_entries; ++i) {
        const f64 s = i / 1020.0;
        REQUIRE(std::abs(t.decode[i] - (s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4))) <
                1e-6);
    }
    for (u32 code = 40; code < 256; ++code) REQUIRE(t.encode[encode_index(t.decode[code * 4])] == code);
    for (u32 code = 0; code < 40; ++code)
        REQUIRE(std::abs(static_cast<int>(t.encode[encode_index(t.decode[code * 4])]) -
                         static_cast<int>(code)) <= 1);
    for (u32 i = 1; i < encode_entries; ++i) REQUIRE(t.encode[i] >= t.encode[i - 1]);
}

TEST_CASE("A cut is at the same point for both orders of the ends") {
    const viewport view = make_viewport(1920, 1080, 0.1F);
    u32 seed = 1;
    const auto next = [&] {
        return static_cast<f32>(static_cast<i32>(seed = hash_u32(seed + 1)) % 1000) * 0.013F;
    };
    for (u32 i = 0; i < 5000; ++i) {
        const clip_vertex a{next(), next(), 0.1F + abs_(next())}, b{next(), next(), -abs_(next())};
        const clip_vertex p = cut(a, b, view, 0), q = cut(b, a, view, 0);
        REQUIRE(bits_of(p.x) == bits_of(q.x));
        REQUIRE(bits_of(p.y) == bits_of(q.y));
        REQUIRE(p.w == view.near);
    }
    // ends that cancel: here the last bits of the sum depend on the end that it starts from
    for (u32 i = 1; i < 2000; ++i) {
        const f32 far = 1.0e6F + static_cast<f32>(i) * 37.0F;
        const clip_vertex a{far, next(), 1.1F}, b{-far * 0.7F, next(), -0.6F};
        const clip_vertex p = cut(a, b, view, 0), q = cut(b, a, view, 0);
        REQUIRE(bits_of(p.x) == bits_of(q.x));
        REQUIRE(bits_of(p.y) == bits_of(q.y));
    }
}

TEST_CASE("The perspective camera has its target in the middle and the field of view at the edges") {
    kernels::camera_state camera;
    const matrix34 m = view_projection(camera, 1920, 1080);
    const clip_vertex middle = to_clip(m.m, {0.0F, 0.0F, 0.0F});
    REQUIRE(std::abs(middle.x) < 1e-6F);
    REQUIRE(std::abs(middle.w - 2.6F) < 1e-6F);
    const clip_vertex top = to_clip(m.m, {0.0F, 2.6F * std::tan(0.4F), 0.0F});
    REQUIRE(std::abs(top.y / top.w - 1.0F) < 1e-5F);
}

TEST_CASE("Perspective-correct barycentrics return the corners at the corners") {
    const clip_vertex a{-0.5F, -0.5F, 1.0F}, b{1.5F, -0.25F, 3.0F}, c{0.2F, 1.0F, 2.0F};
    const barycentrics at_a = barycentrics_at(-0.5F, -0.5F, a, b, c),
                       at_b = barycentrics_at(0.5F, -0.25F / 3.0F, a, b, c);
    REQUIRE(std::abs(at_a.a - 1.0F) < 1e-5F);
    REQUIRE(std::abs(at_b.b - 1.0F) < 1e-5F);
    // the middle of the edge a-b in space is not its middle on the screen
    const barycentrics half = barycentrics_at((-0.5F + 1.5F) / 4.0F, (-0.5F - 0.25F) / 4.0F, a, b, c);
    REQUIRE(std::abs(half.a - 0.5F) < 1e-5F);
    REQUIRE(std::abs(half.b - 0.5F) < 1e-5F);
}
