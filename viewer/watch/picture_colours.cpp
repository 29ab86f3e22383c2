#include "viewer/watch/picture_colours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/enum_names.hpp"
#include "kernels/body/srgb.hpp"
#include "picture/rgba.hpp"
#include "viewer/watch/picture_range.hpp"

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

void put(std::byte* to, colour c) noexcept {
    to[0] = std::byte{c.r};
    to[1] = std::byte{c.g};
    to[2] = std::byte{c.b};
    to[3] = std::byte{255};
}

/// Returns the used part of the picture, clamped to the picture's size.
picture_part part_of(const plane_picture& p, picture_part used) {
    return {std::min(p.width, used.width), std::min(p.height, used.height)};
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
                const f64 v = read(at);
                if (p.zero_is_nothing && v == 0) {
                    put(out, {});
                    continue;
                }
                const int k = step.of(v);
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

/// Reads an integer with all its bits.
u64 whole_at(const plane_picture& p, const std::byte* at) noexcept {
    u64 out = 0;
    std::memcpy(&out, at, std::min<u64>(sizeof out, ring::element_bytes(p.type)));
    return out;
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014) spreads neighbouring numbers over all colours.
colour label_colour(u64 label) noexcept {
    if (label == 0) return {};
    u64 z = label * 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30U) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27U) * 0x94d049bb133111ebU;
    z ^= z >> 31U;
    const auto bright = [](u64 bits) { return static_cast<u8>(64 + (bits & 0xffU) * 191 / 255); };
    return {bright(z), bright(z >> 8U), bright(z >> 16U)};
}

/// A surface that shows only its emission has no normal: no octahedral coordinate is 65535.
constexpr u32 no_normal = ~0U;

kernels::body::vec3 octahedral_at(const std::byte* at) noexcept {
    return kernels::body::unpack_normal(bits_of<u32>(at));
}

bool is_packed_light(const plane_picture& p) noexcept {
    return p.channels == 1 && p.type == element::u32_ && p.meaning == plane_meaning::light;
}

/// Red, green and blue with a common exponent (EXT_texture_shared_exponent, "RGB9_E5").
std::array<f64, 3> packed_light_at(const std::byte* at) noexcept {
    const u32 bits = bits_of<u32>(at);
    const int exponent = static_cast<int>(bits >> 27U) - 24;
    const auto part = [&](u32 shift) { return std::ldexp(static_cast<f64>(bits >> shift & 511U), exponent); };
    return {part(0), part(9), part(18)};
}

colour vector_colour(f64 x, f64 y, f64 z) noexcept {
    return {in_bytes(x * 0.5 + 0.5), in_bytes(y * 0.5 + 0.5), in_bytes(z * 0.5 + 0.5)};
}

/// Linear light as sRGB. `gain`: the factor of the exposure.
colour light_colour(const f64 (&rgb)[3], f64 gain, tone_map tone) noexcept {
    static constexpr kernels::body::srgb_tables tables = kernels::body::make_srgb_tables();
    const auto bounded = [gain](f64 v) { return static_cast<f32>(std::clamp(v * gain, -1e30, 1e30)); };
    const kernels::body::vec3 c =
        kernels::body::tone_mapped({bounded(rgb[0]), bounded(rgb[1]), bounded(rgb[2])}, tone);
    const auto code = [](f32 v) {
        constexpr f64 last = kernels::body::encode_entries - 1;
        return tables.encode[static_cast<std::size_t>(std::clamp(f64{v}, 0.0, 1.0) * last + 0.5)];
    };
    return {code(c.x), code(c.y), code(c.z)};
}

/// Calls `use` with the pointers to a pixel and to its colour, for each pixel of the part.
template <typename Use>
void for_each_pixel(const plane_picture& p, const std::byte* from, std::byte* to, picture_part part,
                    const Use& use) {
    for (u32 y = 0; y < part.height; ++y)
        for (u32 x = 0; x < part.width; ++x) use(p.at(from, x, y), to + (u64{y} * p.width + x) * 4);
}

/// Paints light, or unit vectors of three channels. One channel of light is grey.
template <typename Read>
void paint_vectors(const plane_picture& p, const std::byte* from, std::byte* to, picture_part part,
                   const picture_style& style, picture_scale& s, const Read& read) {
    const f64 gain = std::exp2(std::clamp(style.exposure, -most_exposure, most_exposure));
    for_each_pixel(p, from, to, part, [&](const std::byte* at, std::byte* out) {
        f64 v[3] = {};
        bool nan = false, finite = true;
        if (is_packed_light(p)) {
            const std::array<f64, 3> rgb = packed_light_at(at);
            return put(out, light_colour({rgb[0], rgb[1], rgb[2]}, gain, style.tone));
        }
        for (u32 c = 0; c < 3; ++c) {
            v[c] = c < p.channels ? read(at + c * p.channel_bytes) : p.channels == 1 ? v[0] : 0;
            nan = nan || std::isnan(v[c]);
            finite = finite && std::isfinite(v[c]);
        }
        if (!finite) {
            ++(nan ? s.nan : s.infinite);
            return put(out, no_number_colour);
        }
        put(out, s.colours == colour_map::light ? light_colour(v, gain, style.tone)
                                                : vector_colour(v[0], v[1], v[2]));
    });
}

/// The map that is used for a picture of values.
colour_map map_of(const plane_picture& p, const picture_style& style) {
    const std::vector<colour_map> can = maps_of(p);
    const auto possible = [&can](colour_map m) { return std::find(can.begin(), can.end(), m) != can.end(); };
    if (style.colours && possible(*style.colours)) return *style.colours;
    if (p.meaning == plane_meaning::light && possible(colour_map::light)) return colour_map::light;
    if (p.meaning == plane_meaning::normals && possible(colour_map::normals)) return colour_map::normals;
    if (p.meaning == plane_meaning::labels && possible(colour_map::labels)) return colour_map::labels;
    return p.channels == 1 && is_float(p.type) ? colour_map::viridis : colour_map::grey;
}

picture_scale paint_plane(const plane_picture& p, const std::byte* from, std::byte* to,
                          const picture_style& style, picture_part part) {
    picture_scale s;
    s.of_values = true;
    s.colours = map_of(p, style);
    if (s.colours == colour_map::labels) {
        for_each_pixel(p, from, to, part,
                       [&](const std::byte* at, std::byte* out) { put(out, label_colour(whole_at(p, at))); });
    } else if (s.colours == colour_map::normals && p.channels == 1) {
        for_each_pixel(p, from, to, part, [](const std::byte* at, std::byte* out) {
            const kernels::body::vec3 n = octahedral_at(at);
            const u32 bits = bits_of<u32>(at);
            put(out, bits == 0 || bits == no_normal ? colour{} : vector_colour(n.x, n.y, n.z));
        });
    } else {
        with_reader(p.type, [&](auto read) {
            if (!has_range(s.colours)) return paint_vectors(p, from, to, part, style, s, read);
            const limits r = range_of(p, from, style, part, read);
            s.low = r.low;
            s.high = r.high;
            paint_values(p, from, to, part, s, read);
        });
    }
    return s;
}

/// The picture of one channel, and where its bytes begin. Returns nullopt if all channels are shown.
std::optional<std::pair<plane_picture, const std::byte*>> one_channel(const plane_picture& p,
                                                                      const std::byte* from,
                                                                      const picture_style& style) {
    const auto at = std::find(p.channel_names.begin(), p.channel_names.end(), style.channel);
    if (style.channel.empty() || at == p.channel_names.end()) return std::nullopt;
    plane_picture out = p;
    out.channels = 1;
    out.channel_names.clear();
    out.meaning = plane_meaning::values;
    return std::pair(std::move(out), from + static_cast<u64>(at - p.channel_names.begin()) * p.channel_bytes);
}

void paint_colours(const plane_picture& p, const std::byte* from, std::byte* to) {
    const u64 high = ring::element_bytes(p.type) - 1;  // the most significant byte of a value
    for (u32 y = 0; y < p.height; ++y)
        for (u32 x = 0; x < p.width; ++x, to += 4) {
            for (u32 c = 0; c < 4; ++c) to[c] = c < p.channels ? p.at(from, x, y, c)[high] : std::byte{255};
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
    nv12_to_rgba8({from, p.row_bytes, from + p.chroma_at, p.chroma_row, p.width, p.height, p.colours}, to);
}

}  // namespace

BOOST_DESCRIBE_ENUM(colour_map, grey, viridis, labels, light, normals)
const char* name_of(colour_map map) noexcept { return enum_name(map); }
std::optional<colour_map> colour_map_named(std::string_view name) noexcept {
    return enum_named<colour_map>(name);
}

std::vector<colour_map> maps_of(const plane_picture& p) {
    if (p.kind != picture_kind::values) return {};
    std::vector<colour_map> out{colour_map::grey};
    if (p.channels == 1) out.push_back(colour_map::viridis);
    if (p.channels == 1 && !is_float(p.type)) out.push_back(colour_map::labels);
    if (is_float(p.type) || is_packed_light(p)) out.push_back(colour_map::light);
    if (p.channels >= 3 ? is_float(p.type) : p.channels == 1 && p.type == element::u32_)
        out.push_back(colour_map::normals);
    return out;
}

constexpr std::pair<const char*, tone_map> tone_maps[] = {
    {"neutral", tone_map::neutral}, {"aces", tone_map::aces}, {"linear", tone_map::linear}};
const char* name_of(tone_map map) noexcept {
    for (const auto& [name, each] : tone_maps)
        if (each == map) return name;
    return "?";
}
std::optional<tone_map> tone_map_named(std::string_view name) noexcept {
    for (const auto& [known, each] : tone_maps)
        if (known == name) return each;
    return std::nullopt;
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
            if (const auto one = one_channel(p, from, style))
                s = paint_plane(one->first, one->second, to, style, part_of(p, used));
            else
                s = paint_plane(p, from, to, style, part_of(p, used));
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
    if (p.channels == 1 && p.meaning == plane_meaning::normals) {
        const kernels::body::vec3 n = octahedral_at(p.at(from, x, y));
        return fmt::format("{} (x {:.3f} y {:.3f} z {:.3f})", value_text(p.type, p.at(from, x, y)), n.x, n.y,
                           n.z);
    }
    if (is_packed_light(p)) {
        const std::array<f64, 3> rgb = packed_light_at(p.at(from, x, y));
        return fmt::format("red {:.4g} green {:.4g} blue {:.4g}", rgb[0], rgb[1], rgb[2]);
    }
    if (p.channels == 1) return value_text(p.type, p.at(from, x, y));
    static const std::vector<std::string> rgba{"R", "G", "B", "A"};
    const std::vector<std::string>& names = p.kind == picture_kind::values ? p.channel_names : rgba;
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
