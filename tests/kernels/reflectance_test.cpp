// Reflectance, tone maps, sky and the passes of light and post against double precision or published values.
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/body/light.hpp"
#include "kernels/body/post.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::body;

namespace {

constexpr f64 circle = 3.14159265358979323846;

f64 ggx(f64 n_h, f64 alpha) {
    const f64 d = n_h * n_h * (alpha * alpha - 1) + 1;
    return alpha * alpha / (circle * d * d);
}
/// glTF 2.0, appendix B.3.2: G / (4 n_l n_v).
f64 smith(f64 n_l, f64 n_v, f64 alpha) {
    const f64 square = alpha * alpha;
    return 0.5 / (n_l * std::sqrt(n_v * n_v * (1 - square) + square) +
                  n_v * std::sqrt(n_l * n_l * (1 - square) + square));
}

const environment& tables_of_sky() {
    static const std::unique_ptr<environment> made = [] {
        auto e = std::make_unique<environment>();
        make_environment(*e);
        return e;
    }();
    return *made;
}

vec3 direction(u32 i, u32 count) {
    const f64 y = 1 - 2 * (i + 0.5) / count, flat = std::sqrt(1 - y * y), turn = 2.39996322972865332 * i;
    return {static_cast<f32>(flat * std::cos(turn)), static_cast<f32>(y),
            static_cast<f32>(flat * std::sin(turn))};
}

bool near(vec3 a, vec3 b, f64 tolerance) {
    return std::abs(a.x - b.x) <= tolerance && std::abs(a.y - b.y) <= tolerance &&
           std::abs(a.z - b.z) <= tolerance;
}

constexpr srgb_tables tables = make_srgb_tables();

}  // namespace

TEST_CASE("the distribution of normals integrates to 1, and equals glTF's formula") {
    for (const f32 alpha : {0.04F, 0.2F, 0.6F, 1.0F}) {
        constexpr int steps = 20000;
        f64 sum = 0;
        for (int i = 0; i < steps; ++i) {
            const f64 angle = (i + 0.5) / steps * circle / 2, cosine = std::cos(angle);
            sum += distribution_ggx(static_cast<f32>(cosine), alpha) * cosine * std::sin(angle) * circle *
                   circle / steps;
            if (alpha < 0.1F) continue;  // n_h is rounded, which matters for the narrowest lobe only
            CHECK(std::abs(distribution_ggx(static_cast<f32>(cosine), alpha) /
                               ggx(static_cast<f32>(cosine), alpha) -
                           1) < 1e-5);
        }
        CHECK(std::abs(sum - 1) < 2e-3);
    }
    for (const f32 n_l : {0.1F, 0.5F, 1.0F})
        for (const f32 n_v : {0.05F, 0.7F})
            CHECK(std::abs(visibility_smith(n_l, n_v, 0.3F) / smith(n_l, n_v, 0.3F) - 1) < 1e-6);
    CHECK(schlick_weight(0.0F) == 1.0F);
    CHECK(schlick_weight(1.0F) == 0.0F);
    CHECK(schlick_weight(0.5F) == 1.0F / 32.0F);
}

TEST_CASE("reflected light is glTF's diffuse plus specular, and a clearcoat adds a highlight") {
    const vec3 n{0, 0, 1}, l = unit({0.3F, 0.1F, 0.8F}), v = unit({-0.2F, 0.4F, 0.9F});
    material m{{0.5F, 0.25F, 0.1F}, 0.3F, 0.5F, 0.0F, 0.0F};
    const vec3 got = reflect_light(m, lobes_of(m), n, v, l);
    const vec3 h = unit(l + v);
    const f64 weight = std::pow(1.0 - dot(v, h), 5.0);
    const f64 lobe = ggx(h.z, 0.25) * smith(l.z, v.z, 0.25);
    const f32 albedo[3] = {0.5F, 0.25F, 0.1F};
    const f32 out[3] = {got.x, got.y, got.z};
    for (int k = 0; k < 3; ++k) {
        const f64 f0 = 0.04 * 0.7 + albedo[k] * 0.3, f = f0 + (1 - f0) * weight;
        const f64 expected = ((1 - f) * albedo[k] * 0.7 / circle + f * lobe) * l.z;
        CHECK(std::abs(out[k] / expected - 1) < 1e-5);
    }
    m.clearcoat = 1.0F;
    const vec3 mirrored = unit({0.2F, -0.4F, 0.9F});
    CHECK(reflect_light(m, lobes_of(m), n, v, mirrored).x > 5.0F * got.x);
    CHECK(reflect_light(m, lobes_of(m), n, v, {0, 0, -1}).x == 0.0F);
}

TEST_CASE("punctual lights fall off as KHR_lights_punctual states") {
    CHECK(distance_attenuation(2.0F, 0.0F) == 0.25F);
    CHECK(distance_attenuation(2.0F, 4.0F) == 0.25F * (1.0F - 1.0F / 16.0F));
    CHECK(distance_attenuation(4.0F, 4.0F) == 0.0F);
    CHECK(spot_attenuation(0.9F, 0.9F, 0.7F) > 0.9999F);
    CHECK(spot_attenuation(0.7F, 0.9F, 0.7F) == 0.0F);
    CHECK(std::abs(spot_attenuation(0.8F, 0.9F, 0.7F) - 0.25F) < 1e-5F);
}

TEST_CASE("tone maps have the values of their publications") {
    // Neutral: an offset of x - 6.25 x^2 below 0.08, then 0.04; the shoulder begins at 0.76 and ends at 1
    CHECK(near(tone_neutral({0.5F, 0.5F, 0.5F}), {0.46F, 0.46F, 0.46F}, 1e-6));
    CHECK(near(tone_neutral({0.04F, 0.04F, 0.04F}), {0.01F, 0.01F, 0.01F}, 1e-6));
    CHECK(near(tone_neutral({0.8F, 0.8F, 0.8F}), {0.76F, 0.76F, 0.76F}, 1e-6));
    CHECK(near(tone_neutral({1000.0F, 1000.0F, 1000.0F}), {1, 1, 1}, 1e-3));
    f32 last = -1;
    for (int i = 0; i < 400; ++i) {
        const f32 now = tone_neutral({0.05F * static_cast<f32>(i), 0.02F, 0.01F}).x;
        CHECK(now >= last);
        last = now;
    }
    // ACES: rows of both matrices sum to 1, so greys stay grey; the rational function in double
    for (const f64 x : {0.05, 0.18, 1.0, 8.0}) {
        const f64 v = x / 0.6;
        const f64 expected =
            (v * (v + 0.0245786) - 0.000090537) / (v * (0.983729 * v + 0.4329510) + 0.238081);
        const f32 g = static_cast<f32>(x);
        CHECK(near(tone_aces({g, g, g}),
                   {static_cast<f32>(expected), static_cast<f32>(expected), static_cast<f32>(expected)},
                   2e-5));
    }
}

TEST_CASE("a packed normal is within 8e-5 radians of its direction") {
    f64 most = 0;
    for (u32 i = 0; i < 20000; ++i) {
        const vec3 n = direction(i, 20000), d = unpack_normal(pack_normal(n)) - n;
        most = std::max(most, std::sqrt(static_cast<f64>(dot(d, d))));
    }
    CHECK(most < 8e-5);
    CHECK(most > 0);
}

TEST_CASE("the split-sum table equals an integral over the hemisphere in double precision") {
    for (const u32 y : {14U, 20U, 31U}) {
        for (const u32 x : {6U, 20U, 31U}) {
            const f64 n_v = x / 31.0, alpha = std::pow(y / 31.0, 2);
            const f64 v[3] = {std::sqrt(1 - n_v * n_v), 0, n_v};
            constexpr int steps = 160;
            f64 scale = 0, bias = 0;
            for (int i = 0; i < steps; ++i) {
                for (int k = 0; k < 2 * steps; ++k) {
                    const f64 n_l = (i + 0.5) / steps, flat = std::sqrt(1 - n_l * n_l);
                    const f64 turn = (k + 0.5) / steps * circle;
                    const f64 h[3] = {v[0] + flat * std::cos(turn), flat * std::sin(turn), v[2] + n_l};
                    const f64 length = std::sqrt(h[0] * h[0] + h[1] * h[1] + h[2] * h[2]);
                    const f64 v_h = (v[0] * h[0] + v[2] * h[2]) / length, weight = std::pow(1 - v_h, 5.0);
                    const f64 part =
                        ggx(h[2] / length, alpha) * smith(n_l, n_v, alpha) * n_l * circle / (steps * steps);
                    scale += part * (1 - weight);
                    bias += part * weight;
                }
            }
            const f32* const got = tables_of_sky().split_sum[y][x];
            INFO(x << " " << y);
            CHECK(std::abs(got[0] - scale) < 0.012);
            CHECK(std::abs(got[1] - bias) < 0.012);
        }
    }
}

TEST_CASE("a mirror sees the sky, a rough surface sees its mean, and the sky's map has no seams") {
    const environment& e = tables_of_sky();
    f64 worst_mirror = 0, mean[3] = {}, harmonic[3] = {};
    constexpr u32 count = 2000;
    for (u32 i = 0; i < count; ++i) {
        const vec3 d = direction(i, count), sky = sky_radiance(d), seen = reflected_sky(e, d, 0.0F);
        f32 u, v;
        sky_position(d, u, v);
        CHECK(near(sky_direction(u, v), d, 1e-5));
        worst_mirror = std::max(worst_mirror, std::abs(f64{seen.x} - sky.x));
        const vec3 diffuse = diffuse_sky(e, d);
        mean[0] += sky.x, mean[1] += sky.y, mean[2] += sky.z;
        harmonic[0] += diffuse.x, harmonic[1] += diffuse.y, harmonic[2] += diffuse.z;
    }
    CHECK(worst_mirror < 1.6);  // at the edges of the lamps, whose brightness is 6
    for (int k = 0; k < 3; ++k) CHECK(std::abs(harmonic[k] / mean[k] - 1) < 0.01);
    // The diffuse light from above, against the integral
    for (const vec3 n : {vec3{0, 1, 0}, vec3{1, 0, 0}, vec3{0, -1, 0}}) {
        f64 sum = 0;
        for (u32 i = 0; i < 20000; ++i) {
            const vec3 d = direction(i, 20000);
            sum += std::max(0.0F, dot(d, n)) * sky_radiance(d).y * 4.0 / 20000;
        }
        CHECK(std::abs(diffuse_sky(e, n).y - sum) < 0.12 * sum);
    }
    // Directions on both sides of the map's border (below the horizon)
    for (u32 i = 0; i < 50; ++i) {
        const f32 t = static_cast<f32>(i) * 0.02F - 0.5F;
        const vec3 a = unit({t, -0.5F, 0.0005F}), b = unit({t, -0.5F, -0.0005F});
        CHECK(near(reflected_sky(e, a, 0.4F), reflected_sky(e, b, 0.4F), 0.02));
    }
}

TEST_CASE("the filter of a shadow edge passes the part of the light that its box covers") {
    constexpr u32 side = 64;
    std::vector<f32> map(side * side, 0.0F);
    light_args args;
    args.width = args.height = 8;
    args.shadow = map.data();
    args.shadow_side = side;
    args.shadow_radius = 2.0F;
    args.scene.light[0] = 0.0F, args.scene.light[1] = 0.0F, args.scene.light[2] = 1.0F;
    const light_pass p = make_light_pass(args, &tables);
    const vec3 n{0, 0, 1};
    CHECK(sunlit(p, {0, 0, 0}, n) == 1.0F);
    for (u32 y = 0; y < side; ++y)
        for (u32 x = side / 2; x < side; ++x) map[y * side + x] = 1.0F;  // near the light: hides all
    CHECK(sunlit(p, {-1, 0, 0}, n) == 1.0F);
    CHECK(sunlit(p, {1, 0, 0}, n) == 0.0F);
    const f32 edge = sunlit(p, {0, 0, 0}, n);
    CHECK(edge > 0.45F);
    CHECK(edge < 0.55F);
    f32 last = 1.0F;
    for (int i = -20; i <= 20; ++i) {
        const f32 now = sunlit(p, {static_cast<f32>(i) * 0.02F, 0, 0}, n);
        CHECK(now <= last + 1e-6F);
        CHECK(last - now < 0.08F);  // 0.02 is a third of a texel
        last = now;
    }
    CHECK(sunlit(p, {50, 0, 0}, n) == 1.0F);  // outside the map
}

TEST_CASE("a smoothed staircase has intermediate colours, and flat parts keep theirs") {
    constexpr u32 side = 24;
    std::vector<u32> from(side * side), to(side * side);
    for (u32 y = 0; y < side; ++y)
        for (u32 x = 0; x < side; ++x) from[y * side + x] = x * 2 > y + 12 ? 0xffffffffU : 0xff000000U;
    const smooth_pass p{from.data(), to.data(), side, side};
    u32 between = 0, changed_far = 0;
    for (u32 y = 0; y < side; ++y) {
        for (u32 x = 0; x < side; ++x) {
            smooth_pixel(p, x, y);
            const u32 c = to[y * side + x] & 255U;
            between += c != 0 && c != 255 ? 1U : 0U;
            if (std::abs(static_cast<int>(x * 2) - static_cast<int>(y + 12)) > 12)
                changed_far += to[y * side + x] != from[y * side + x] ? 1U : 0U;
        }
    }
    CHECK(between > side / 2);
    CHECK(changed_far == 0);
}

TEST_CASE("bloom keeps an even picture as it is, and spreads a bright pixel without losing light") {
    constexpr u32 side = 32;
    std::vector<f32> from(side * side * 4, 0.5F), to(16 * 16 * 4);
    const bloom_down_pass p{{from.data(), side, side}, {to.data(), 16, 16}, 24.0F};
    bloom_down_pixel(p, 7, 7);
    CHECK(to[(7 * 16 + 7) * 4] == 0.5F);
    std::fill(from.begin(), from.end(), 0.0F);
    from[(15 * side + 16) * 4] = 16.0F;
    f32 sum = 0;
    for (u32 y = 0; y < 16; ++y)
        for (u32 x = 0; x < 16; ++x) bloom_down_pixel(p, x, y), sum += to[(y * 16 + x) * 4];
    CHECK(sum == 4.0F);  // a quarter of the pixels, with the same mean
    std::fill(to.begin(), to.end(), 0.25F);
    CHECK(enlarged({to.data(), 16, 16}, 31, 0).x == 0.25F);
}

TEST_CASE("equal pictures compare as black, and a difference of 1 is visible") {
    const u32 a[2] = {0xff102030U, 0xff000000U}, b[2] = {0xff102030U, 0xff010000U};
    u32 color[2];
    const compare_pass p{a, b, color, 2, 8};
    CHECK(compare_pixel(p, 0, 0) == 0);
    CHECK(color[0] == 0xff000000U);
    CHECK(compare_pixel(p, 1, 0) == 1);
    CHECK(color[1] == 0xff200000U);
}
