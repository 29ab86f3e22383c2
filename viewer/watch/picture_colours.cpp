#include "viewer/watch/picture_colours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/enum_names.hpp"
#include "viewer/watch/plane_picture.hpp"

namespace carousel::viewer {
namespace {

// viridis by a polynomial of degree 6 for each of red, green and blue: Matt Zucker's fit
// (https://www.shadertoy.com/view/WlfXRN, CC0) to the table by Smith, van der Walt and Firing
// (https://github.com/BIDS/colormap, CC0). The error is at most 3 of 255.
constexpr f64 viridis[7][3] = {{0.2777273272234177, 0.005407344544966578, 0.3340998053353061},
                               {0.1050930431085774, 1.404613529898575, 1.384590162594685},
                               {-0.3308618287255563, 0.214847559468213, 0.09509516302823659},
                               {-4.634230498983486, -5.799100973351585, -19.33244095627987},
                               {6.228269936347081, 14.17993336680509, 56.69055260068105},
                               {4.776384997670288, -13.74514537774601, -65.35303263337234},
                               {-5.435455855934631, 4.645852612178535, 26.3124352495832}};

u8 in_bytes(f64 part) noexcept { return static_cast<u8>(std::lround(std::clamp(part, 0.0, 1.0) * 255)); }

std::array<colour, 256> make_table(colour_map map) noexcept {
    std::array<colour, 256> out;
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = colour_at(map, static_cast<f64>(k) / 255);
    return out;
}

using ring::element;

constexpr u64 most_samples = 65'536;
constexpr f64 left_out_a_side = 0.005;

void put(std::byte* to, colour c) noexcept {
    to[0] = std::byte{c.r};
    to[1] = std::byte{c.g};
    to[2] = std::byte{c.b};
    to[3] = std::byte{255};
}

struct limits {
    f64 low = 0, high = 0;
};

/// Returns the used part of the picture, clamped to the picture's size.
picture_part part_of(const plane_picture& p, picture_part used) {
    return {std::min(p.width, used.width), std::min(p.height, used.height)};
}

template <typename Read>
limits extremes_of(const plane_picture& p, const std::byte* from, picture_part part, const Read& read) {
    f64 low = HUGE_VAL, high = -HUGE_VAL;
    for (u32 y = 0; y < part.height; ++y)
        for (u32 x = 0; x < part.width; ++x)
            for (u32 c = 0; c < std::min(p.channels, 3U); ++c) {
                const f64 v = read(p.at(from, x, y, c));
                if (!std::isfinite(v)) continue;
                low = std::min(low, v);
                high = std::max(high, v);
            }
    return low <= high ? limits{low, high} : limits{};
}

/// Computes percentiles of all values of the picture. If these are more than about most_samples, uses only
/// about most_samples of them, spread evenly over the picture.
template <typename Read>
limits usual_of(const plane_picture& p, const std::byte* from, picture_part part, const Read& read) {
    const u64 channels = std::min(p.channels, 3U), all = u64{part.width} * part.height * channels;
    const u64 step = std::max<u64>(1, all / most_samples | 1U);  // an odd number, so that the samples of
                                                                 // different rows are in different columns
    std::vector<f64> seen;
    seen.reserve(all / step + 1);
    for (u64 k = 0; k < all; k += step) {
        const u64 pixel = k / channels;
        const f64 v = read(p.at(from, static_cast<u32>(pixel % part.width),
                                static_cast<u32>(pixel / part.width), static_cast<u32>(k % channels)));
        if (std::isfinite(v)) seen.push_back(v);
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
limits range_of(const plane_picture& p, const std::byte* from, const picture_style& style, picture_part part,
                const Read& read) {
    if (style.range == range_choice::fixed)
        return {std::min(style.low, style.high), std::max(style.low, style.high)};
    if (style.range == range_choice::extremes) return extremes_of(p, from, part, read);
    if (p.type == element::bool_) return {0, 1};
    if (p.type == element::u8_) return {0, 255};
    if (p.type == element::i8_) return {-128, 127};
    return usual_of(p, from, part, read);
}

/// Maps each value to a step of the scale, 0 to 255, and counts the values that are outside the scale.
class steps {
public:
    explicit steps(picture_scale& s)
        : scale_(&s), half_(std::isfinite(s.high - s.low) ? 1 : 0.5), span_(s.high * half_ - s.low * half_) {}
    /// Returns -1 for NaN and the infinities.
    [[nodiscard]] int of(f64 v) noexcept {
        if (!std::isfinite(v)) {
            ++(std::isnan(v) ? scale_->nan : scale_->infinite);
            return -1;
        }
        if (v < scale_->low) return ++scale_->below, 0;
        if (v > scale_->high) return ++scale_->above, 255;
        // If all values are the same, uses the middle of the scale.
        return span_ > 0 ? static_cast<int>((v * half_ - scale_->low * half_) / span_ * 255 + 0.5) : 127;
    }

private:
    picture_scale* scale_;
    f64 half_;  ///< 0.5 if the size of the range is too large for an f64, 1 if it is not
    f64 span_;
};

template <typename Read>
void paint_values(const plane_picture& p, const std::byte* from, std::byte* to, picture_part part,
                  picture_scale& s, const Read& read) {
    const std::array<colour, 256>& table = table_of(s.colours);
    steps step(s);
    for (u32 y = 0; y < part.height; ++y) {
        const std::byte* at = p.at(from, 0, y);
        std::byte* out = to + u64{y} * p.width * 4;
        for (u32 x = 0; x < part.width; ++x, at += p.pixel_bytes, out += 4) {
            if (p.channels == 1) {
                const int k = step.of(read(at));
                put(out, k < 0 ? no_number_colour : table[static_cast<std::size_t>(k)]);
                continue;
            }
            int rgb[3] = {0, 0, 0};
            bool number = true;
            for (u32 c = 0; c < std::min(p.channels, 3U); ++c) {
                rgb[c] = step.of(read(at + c * p.channel_bytes));
                number = number && rgb[c] >= 0;
            }
            put(out, number
                         ? colour{static_cast<u8>(rgb[0]), static_cast<u8>(rgb[1]), static_cast<u8>(rgb[2])}
                         : no_number_colour);
        }
    }
}

void paint_colours(const plane_picture& p, const std::byte* from, std::byte* to) {
    for (u32 y = 0; y < p.height; ++y)
        for (u32 x = 0; x < p.width; ++x, to += 4) {
            for (u32 c = 0; c < 3; ++c) to[c] = *p.at(from, x, y, c);
            to[3] = p.channels == 4 ? *p.at(from, x, y, 3) : std::byte{255};
        }
}

struct chroma {
    u8 u = 0, v = 0;
};
chroma chroma_at(const plane_picture& p, const std::byte* from, u32 x, u32 y) {
    const std::byte* at = from + p.chroma_at + y / 2 * p.chroma_row + x / 2 * 2;
    return {std::to_integer<u8>(at[0]), std::to_integer<u8>(at[1])};
}

void paint_nv12(const plane_picture& p, const std::byte* from, std::byte* to) {
    const f64 black = p.full_range ? 0 : 16, span = p.full_range ? 255 : 219,
              differences = p.full_range ? 255 : 224, green_part = 1 - p.red_part - p.blue_part;
    const auto in_bytes = [](f64 v) { return static_cast<u8>(std::clamp(v * 255 + 0.5, 0.0, 255.0)); };
    for (u32 y = 0; y < p.height; ++y)
        for (u32 x = 0; x < p.width; ++x, to += 4) {
            const chroma c = chroma_at(p, from, x, y);
            const f64 light = (std::to_integer<u8>(*p.at(from, x, y)) - black) / span;
            const f64 red = light + 2 * (1 - p.red_part) * (c.v - 128) / differences,
                      blue = light + 2 * (1 - p.blue_part) * (c.u - 128) / differences;
            const f64 green = (light - p.red_part * red - p.blue_part * blue) / green_part;
            put(to, {in_bytes(red), in_bytes(green), in_bytes(blue)});
        }
}

}  // namespace

BOOST_DESCRIBE_ENUM(colour_map, grey, viridis)
const char* name_of(colour_map map) noexcept { return enum_name(map); }
std::optional<colour_map> colour_map_named(std::string_view name) noexcept {
    return enum_named<colour_map>(name);
}

colour colour_at(colour_map map, f64 at) noexcept {
    const f64 t = std::clamp(at, 0.0, 1.0);
    if (map == colour_map::grey) return {in_bytes(t), in_bytes(t), in_bytes(t)};
    f64 rgb[3] = {};
    for (std::size_t power = 7; power-- > 0;)
        for (std::size_t c = 0; c < 3; ++c) rgb[c] = rgb[c] * t + viridis[power][c];
    return {in_bytes(rgb[0]), in_bytes(rgb[1]), in_bytes(rgb[2])};
}

const std::array<colour, 256>& table_of(colour_map map) noexcept {
    static const std::array<colour, 256> grey = make_table(colour_map::grey),
                                         uniform = make_table(colour_map::viridis);
    return map == colour_map::grey ? grey : uniform;
}

void blacken_unused(u32 width, u32 height, picture_part used, std::byte* rgba) {
    if (used.width >= width && used.height >= height) return;
    for (u32 y = 0; y < height; ++y)
        for (u32 x = y < used.height ? used.width : 0; x < width; ++x)
            put(rgba + (u64{y} * width + x) * 4, {});
}

picture_scale to_rgba(const plane_picture& p, const std::byte* from, std::byte* to,
                      const picture_style& style, picture_part used) {
    picture_scale s;
    switch (p.kind) {
        case picture_kind::rgba:
            std::memcpy(to, from, u64{p.width} * p.height * 4);
            break;
        case picture_kind::colours:
            paint_colours(p, from, to);
            break;
        case picture_kind::nv12:
            paint_nv12(p, from, to);
            break;
        case picture_kind::values:
            s.of_values = true;
            s.colours = p.channels > 1 ? colour_map::grey
                                       : style.colours.value_or(is_float(p.type) ? colour_map::viridis
                                                                                 : colour_map::grey);
            const picture_part part = part_of(p, used);
            with_reader(p.type, [&](auto read) {
                const limits r = range_of(p, from, style, part, read);
                s.low = r.low;
                s.high = r.high;
                paint_values(p, from, to, part, s, read);
            });
            break;
    }
    blacken_unused(p.width, p.height, used, to);
    return s;
}

std::string pixel_text(const plane_picture& p, const std::byte* from, u32 x, u32 y) {
    if (x >= p.width || y >= p.height) return "";
    if (p.kind == picture_kind::nv12) {
        const chroma c = chroma_at(p, from, x, y);
        return fmt::format("Y {} U {} V {}", std::to_integer<u32>(*p.at(from, x, y)), c.u, c.v);
    }
    if (p.channels == 1) return value_text(p.type, p.at(from, x, y));
    const char* names = p.kind == picture_kind::values ? "0123" : "RGBA";
    std::string out;
    for (u32 c = 0; c < p.channels; ++c)
        out += fmt::format("{}{} {}", c == 0 ? "" : " ", names[c], value_text(p.type, p.at(from, x, y, c)));
    return out;
}

std::string scale_text(f64 value) { return fmt::format("{:.4g}", value); }

std::string beyond_text(const picture_scale& s) {
    std::string out;
    const auto add = [&out](u64 count, const char* what) {
        if (count != 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, what);
    };
    add(s.below, "below");
    add(s.above, "above");
    add(s.nan, "NaN");
    add(s.infinite, "infinite");
    return out;
}

}  // namespace carousel::viewer
