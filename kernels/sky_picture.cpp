#include "kernels/sky_picture.hpp"

#include <algorithm>

#include "kernels/body/emission.hpp"
#include "kernels/body/sky.hpp"
#include "kernels/environment_tables.hpp"

namespace carousel::kernels {
namespace {

using namespace body;  // NOLINT: the file is built from these functions

constexpr u32 least_side = 16;

/// The texel of an octahedral map of `side` x `side` that contains a direction.
u32 texel_of(vec3 d, u32 side) {
    f32 u, v;
    sky_position(d, u, v);
    const auto place = [side](f32 x) {
        return std::min(static_cast<u32>(to_i32(clamp_(x, 0.0F, 1.0F) * static_cast<f32>(side))), side - 1);
    };
    return place(v) * side + place(u);
}

/// The direction of a pixel's centre.
vec3 direction_of(u32 x, u32 y, u32 width, u32 height) {
    const sine_cosine turn = sine_and_cosine(6.283185307179586 * (x + 0.5) / width),
                      down = sine_and_cosine(3.141592653589793 * (y + 0.5) / height);
    return {static_cast<f32>(-down.sine * turn.sine), static_cast<f32>(down.cosine),
            static_cast<f32>(down.sine * turn.cosine)};
}

}  // namespace

sky_picture::sky_picture(const f32* rgb, u32 width, u32 height) {
    constexpr u32 side = backdrop_side;
    std::vector<f64> sums(std::size_t{side} * side * 4);
    for (u32 y = 0; y < height; ++y) {
        const f64 weight = sine_and_cosine(3.141592653589793 * (y + 0.5) / height).sine;
        for (u32 x = 0; x < width; ++x) {
            f64* const sum = &sums[std::size_t{4} * texel_of(direction_of(x, y, width, height), side)];
            const f32* const from = rgb + (std::size_t{y} * width + x) * 3;
            for (u32 k = 0; k < 3; ++k) sum[k] += weight * from[k];
            sum[3] += weight;
        }
    }
    level first{side, std::vector<f32>(std::size_t{side} * side * 3)};
    std::vector<f64> rows(height);
    std::vector<vec3> columns(width);  // on the equator
    for (u32 x = 0; x < width; ++x) {
        const sine_cosine turn = sine_and_cosine(6.283185307179586 * (x + 0.5) / width);
        columns[x] = {static_cast<f32>(-turn.sine), 0.0F, static_cast<f32>(turn.cosine)};
    }
    for (u32 y = 0; y < height; ++y) rows[y] = sine_and_cosine(3.141592653589793 * (y + 0.5) / height).cosine;
    for (u32 i = 0; i < side * side; ++i) {
        const f64* const sum = &sums[std::size_t{4} * i];
        if (sum[3] > 0) {
            for (u32 k = 0; k < 3; ++k) first.rgb[std::size_t{3} * i + k] = static_cast<f32>(sum[k] / sum[3]);
            continue;
        }
        // No pixel's centre is in this texel: the pixel that contains the texel's centre.
        const vec3 d = sky_direction((static_cast<f32>(i % side) + 0.5F) / side,
                                     (static_cast<f32>(i / side) + 0.5F) / side);
        const auto row = static_cast<u32>(
            std::lower_bound(rows.begin(), rows.end(), f64{d.y}, [](f64 a, f64 b) { return a > b; }) -
            rows.begin());
        const u32 y = std::min(row, height - 1);
        u32 best = 0;
        f32 nearest = -2.0F;
        for (u32 x = 0; x < width; ++x) {
            const f32 cosine = dot(columns[x], d);
            if (cosine > nearest) nearest = cosine, best = x;
        }
        std::copy_n(rgb + (std::size_t{y} * width + best) * 3, 3, &first.rgb[std::size_t{3} * i]);
    }
    levels_.push_back(std::move(first));
    for (u32 s = side / 2; s >= least_side; s /= 2) {
        const level& fine = levels_.back();
        level coarse{s, std::vector<f32>(std::size_t{s} * s * 3)};
        for (u32 i = 0; i < s * s * 3; ++i) {
            const u32 x = i / 3 % s, y = i / 3 / s, k = i % 3;
            const auto at = [&](u32 dx, u32 dy) {
                return fine.rgb[(std::size_t{2 * y + dy} * fine.side + 2 * x + dx) * 3 + k];
            };
            coarse.rgb[i] = (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)) * 0.25F;
        }
        levels_.push_back(std::move(coarse));
    }
}

void sky_picture::fill(environment& to) const {
    // Each level of roughness reads a map whose texels are about as large as the distance of its samples.
    const auto light_from = [this](vec3 d, u32 roughness_level) {
        const level& from = levels_[std::min<std::size_t>(roughness_level == 0 ? 3 : 2 + roughness_level,
                                                          levels_.size() - 1)];
        const f32* const texel = &from.rgb[std::size_t{3} * texel_of(d, from.side)];
        return vec3{texel[0], texel[1], texel[2]};
    };
    fill_environment(to, light_from);
}

std::vector<u32> sky_picture::backdrop() const {
    std::vector<u32> out(std::size_t{backdrop_side} * backdrop_side);
    const std::vector<f32>& rgb = levels_.front().rgb;
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = pack_emission({rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]});
    return out;
}

}  // namespace carousel::kernels
