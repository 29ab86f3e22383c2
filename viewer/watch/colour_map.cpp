#include "viewer/watch/colour_map.hpp"

#include <algorithm>
#include <cmath>

#include "core/enum_names.hpp"

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

}  // namespace carousel::viewer
