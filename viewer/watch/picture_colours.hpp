#pragma once
// From the bytes of a plane to the colours of a picture, and what has to be said beside it: which values the
// first and the last colour stand for, and how many pixels have none.
//
// NaN and the infinities have a colour that no value has, and count for no range. What of a plane is not in
// use is black, and counts for nothing.

#include <optional>
#include <string>
#include <vector>

#include "viewer/watch/colour_map.hpp"
#include "viewer/watch/plane_picture.hpp"

namespace carousel::viewer {

enum class range_choice : u8 {
    automatic,  ///< 8 bit and bool: all that they can hold; else all but 0.5 % of the values at either end
    extremes,   ///< from the frame's smallest to its largest
    fixed,
};

/// How values become colours.
struct picture_style {
    range_choice range = range_choice::automatic;
    f64 low = 0, high = 1;                   ///< fixed
    std::optional<colour_map> colours = {};  ///< nothing: floats in viridis, whole numbers in grey
    bool operator==(const picture_style&) const = default;
};
/// What a picture of values shows.
struct picture_scale {
    bool of_values = false;  ///< false: the colours are the frame's own
    f64 low = 0, high = 0;   ///< what the first and the last colour stand for; equal: all values are the same
    colour_map colours = colour_map::grey;
    u64 below = 0, above = 0;  ///< values beyond the range, shown in its first and last colour
    u64 nan = 0, infinite = 0;
    bool operator==(const picture_scale&) const = default;
};

/// Writes width x height RGBA8 pixels; `from`: the picture's bytes, for the CPU.
picture_scale to_rgba(const plane_picture& p, const std::byte* from, std::byte* to,
                      const picture_style& style = {}, picture_part used = {});
/// Of pixels that are there already.
void blacken_unused(u32 width, u32 height, picture_part used, std::byte* rgba);

/// What lies at a pixel, exactly: "1.25", "R 12 G 13 B 14 A 255", "Y 16 U 128 V 128".
[[nodiscard]] std::string pixel_text(const plane_picture& p, const std::byte* from, u32 x, u32 y);
/// A value of a scale in few digits: "0.5", "1.25e+06".
[[nodiscard]] std::string scale_text(f64 value);
/// "12 below, 3 above, 7 NaN, 1 infinite": how many pixels the scale has no colour of their own for; "":
/// none.
[[nodiscard]] std::string beyond_text(const picture_scale& s);

}  // namespace carousel::viewer
