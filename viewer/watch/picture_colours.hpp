#pragma once
// Maps the values of a pixel to a colour: by a range of values and a colour map (grey, viridis), or, for
// values with a known meaning, as identifiers, as linear light, or as unit vectors. In viridis, equal steps
// of the value appear as equal steps of the colour. This is also true in greyscale print and for most people
// with a colour vision deficiency.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "kernels/body/tone.hpp"
#include "viewer/watch/plane_picture.hpp"

namespace carousel::viewer {

enum class colour_map : u8 {
    grey,
    viridis,
    labels,   ///< a colour for each integer, without order; 0 is black
    light,    ///< linear light, after exposure and tone map
    normals,  ///< a unit vector: red, green and blue are x, y and z, from -1 to 1
};
/// True for the maps that have a range: the lowest and the highest value have a colour.
[[nodiscard]] constexpr bool has_range(colour_map map) noexcept {
    return map == colour_map::grey || map == colour_map::viridis;
}
[[nodiscard]] const char* name_of(colour_map map) noexcept;
[[nodiscard]] std::optional<colour_map> colour_map_named(std::string_view name) noexcept;
/// Returns the maps that can show this picture; empty if the picture contains colours. The other maps have no
/// effect on it.
[[nodiscard]] std::vector<colour_map> maps_of(const plane_picture& p);

using kernels::body::tone_map;
[[nodiscard]] const char* name_of(tone_map map) noexcept;
[[nodiscard]] std::optional<tone_map> tone_map_named(std::string_view name) noexcept;

struct colour {
    u8 r = 0, g = 0, b = 0;
    bool operator==(const colour&) const = default;
};
/// The colour of NaN and the infinities. Neither map contains it.
inline constexpr colour no_number_colour{255, 0, 255};

/// Returns the colour of a map that has a range, for `at`, which goes from 0 (the lowest value) to 1; other
/// values are clamped.
[[nodiscard]] colour colour_at(colour_map map, f64 at) noexcept;
/// Returns such a map in 256 steps; the first step is the colour of 0, and the last step is the colour of 1.
[[nodiscard]] const std::array<colour, 256>& table_of(colour_map map) noexcept;

// Converts the bytes of a plane to the colours of a picture. Also returns the scale: the values that the
// first and the last colour represent, and the number of values outside this range. NaN and the infinities
// have separate colours and do not affect the range. The unused part of a plane is black and is not counted.

enum class range_choice : u8 {
    automatic,  ///< for types of 8 bits and for bool, the type's whole range; for other types, the range of
                ///< the values except the lowest 0.5 % and the highest 0.5 %
    extremes,   ///< the range from the frame's smallest to its largest value
    fixed,
};

inline constexpr f64 most_exposure = 16;

/// How values become colours.
struct picture_style {
    range_choice range = range_choice::automatic;
    f64 low = 0, high = 1;  ///< the range if it is `fixed`
    /// nullopt means the map of the plane's meaning; if there is none, viridis for floats and grey for
    /// integers
    std::optional<colour_map> colours = {};
    f64 exposure = 0;                   ///< of `light`: doublings, from -most_exposure to most_exposure
    tone_map tone = tone_map::neutral;  ///< of `light`
    std::string channel =
        {};  ///< the channel that is shown alone; "", and a name that the picture lacks: all
    bool operator==(const picture_style&) const = default;
};
/// The scale of a picture.
struct picture_scale {
    bool of_values = false;  ///< false: the frame itself contains colours
    /// The picture has a scale from `low` to `high`.
    [[nodiscard]] bool has_ends() const noexcept { return of_values && has_range(colours); }
    f64 low = 0, high = 0;  ///< the values that the first and the last colour represent; they are equal if
                            ///< all values are the same
    colour_map colours = colour_map::grey;
    u64 below = 0, above = 0;  ///< number of values outside the range; these values have the first or the
                               ///< last colour
    u64 nan = 0, infinite = 0;
    bool operator==(const picture_scale&) const = default;
};

/// Writes width x height RGBA8 pixels to `to`, and returns the scale. `from`: the picture's bytes, which the
/// CPU must be able to read; `used`: the part of the picture that is in use; the other part is drawn black.
picture_scale to_rgba(const plane_picture& p, const std::byte* from, std::byte* to,
                      const picture_style& style = {}, picture_part used = {});
/// Paints the unused part of a picture black. The picture already consists of RGBA8 pixels.
void blacken_unused(u32 width, u32 height, picture_part used, std::byte* rgba);

/// Returns the exact value of a pixel as text: "1.25", "R 12 G 13 B 14 A 255", "Y 16 U 128 V 128". An
/// octahedral normal is followed by its vector.
[[nodiscard]] std::string pixel_text(const plane_picture& p, const std::byte* from, u32 x, u32 y);
/// Returns a value of a scale as text with few digits: "0.5", "1.25e+06".
[[nodiscard]] std::string scale_text(f64 value);
/// Describes the values outside the scale: "12 below, 3 above, 7 NaN, 1 infinite"; "": there are none.
[[nodiscard]] std::string beyond_text(const picture_scale& s);

}  // namespace carousel::viewer
