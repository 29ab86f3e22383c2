#pragma once
// The choice of a picture (a plane of one ring, alone or next to a plane of another ring), and a description
// of the picture that is shown.

#include <optional>
#include <string>
#include <vector>

#include "viewer/watch/carried.hpp"
#include "viewer/watch/picture_colours.hpp"

namespace carousel::viewer {

struct plane_choice {
    std::string stage;  ///< the stage whose output is shown; "": the ring that the last sink reads
    std::string plane;  ///< plane_picture::name; "": the colour plane if it is RGBA8, otherwise the first
                        ///< plane
    bool operator==(const plane_choice&) const = default;
};
struct picture_choice {
    plane_choice first;
    std::optional<plane_choice> compare = {};  ///< the same frame in another ring, shown on the right
    bool operator==(const picture_choice&) const = default;
};
/// The styles of the first picture and of the one next to it.
struct picture_styles {
    picture_style of[2];
    bool operator==(const picture_styles&) const = default;
};

/// One of the pictures that are shown.
struct shown_picture {
    std::string stage, plane, type;   ///< type: type of the plane's elements, "f32"
    std::vector<std::string> planes;  ///< all planes of this ring that can be shown
    /// position in the whole image, in its pixels; one pixel of this picture is shown as `zoom` x `zoom` of
    /// these pixels
    u32 x = 0, y = 0, width = 0, height = 0, zoom = 1;
    u64 ring_sequence = 0;
    picture_scale scale;
    carried_facts carried;
};
/// The content of one pixel of the whole image.
struct pointed_pixel {
    std::size_t which = 0;  ///< index of the shown picture
    u32 x = 0, y = 0;       ///< in that picture
    u64 ring_sequence = 0;
    std::string text;  ///< the exact value
};

/// The picture's name for users: "fragment depth f32 · frame 12".
[[nodiscard]] std::string name_of(const shown_picture& p);

// Text forms of a choice, as written on a command line and in the dashboard.
/// Parses "fragment" or "fragment/depth".
[[nodiscard]] plane_choice plane_from_text(std::string_view text);
/// "auto", "extremes", or "LOW..HIGH".
[[nodiscard]] std::string range_text(const picture_style& style);
/// Returns false, and leaves `style` unchanged, if the text has none of these forms or LOW is not less than
/// HIGH.
[[nodiscard]] bool read_range(std::string_view text, picture_style& style);
/// "auto" or a map's name.
[[nodiscard]] std::string colours_text(const picture_style& style);
[[nodiscard]] bool read_colours(std::string_view text, picture_style& style);

}  // namespace carousel::viewer
