#pragma once
// The range of the values of a picture: from the lowest to the highest one, or without the rare values at
// either end.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "viewer/watch/picture_colours.hpp"

namespace carousel::viewer {

inline constexpr u64 most_samples = 65'536;
inline constexpr f64 left_out_a_side = 0.005;

struct limits {
    f64 low = 0, high = 0;
};

/// True if the value takes part in the range.
[[nodiscard]] inline bool counts(const plane_picture& p, f64 v) noexcept {
    return std::isfinite(v) && !(p.zero_is_nothing && v == 0);
}

template <typename Read>
[[nodiscard]] limits extremes_of(const plane_picture& p, const std::byte* from, picture_part part,
                                 const Read& read) {
    f64 low = HUGE_VAL, high = -HUGE_VAL;
    for (u32 y = 0; y < part.height; ++y)
        for (u32 x = 0; x < part.width; ++x)
            for (u32 c = 0; c < std::min(p.channels, 3U); ++c) {
                const f64 v = read(p.at(from, x, y, c));
                if (!counts(p, v)) continue;
                low = std::min(low, v);
                high = std::max(high, v);
            }
    return low <= high ? limits{low, high} : limits{};
}

/// Computes percentiles of all values of the picture. If these are more than about most_samples, uses only
/// about most_samples of them, spread evenly over the picture.
template <typename Read>
[[nodiscard]] limits usual_of(const plane_picture& p, const std::byte* from, picture_part part,
                              const Read& read) {
    const u64 channels = std::min(p.channels, 3U), all = u64{part.width} * part.height * channels;
    const u64 step = std::max<u64>(1, all / most_samples | 1U);  // an odd number, so that the samples of
                                                                 // different rows are in different columns
    std::vector<f64> seen;
    seen.reserve(all / step + 1);
    for (u64 k = 0; k < all; k += step) {
        const u64 pixel = k / channels;
        const f64 v = read(p.at(from, static_cast<u32>(pixel % part.width),
                                static_cast<u32>(pixel / part.width), static_cast<u32>(k % channels)));
        if (counts(p, v)) seen.push_back(v);
    }
    if (seen.empty()) return extremes_of(p, from, part, read);
    const auto cut = static_cast<std::ptrdiff_t>(static_cast<f64>(seen.size()) * left_out_a_side);
    const auto low = seen.begin() + cut, high = seen.end() - 1 - cut;
    std::nth_element(seen.begin(), low, seen.end());
    const f64 lowest = *low;
    std::nth_element(seen.begin(), high, seen.end());
    // If all values except a few are the same, the user is often interested in these few, so the whole range
    // is used.
    return lowest < *high ? limits{lowest, *high} : extremes_of(p, from, part, read);
}

template <typename Read>
[[nodiscard]] limits range_of(const plane_picture& p, const std::byte* from, const picture_style& style,
                              picture_part part, const Read& read) {
    if (style.range == range_choice::fixed)
        return {std::min(style.low, style.high), std::max(style.low, style.high)};
    if (style.range == range_choice::extremes) return extremes_of(p, from, part, read);
    if (p.type == ring::element::bool_) return {0, 1};
    if (p.type == ring::element::u8_) return {0, 255};
    if (p.type == ring::element::i8_) return {-128, 127};
    return usual_of(p, from, part, read);
}

}  // namespace carousel::viewer
