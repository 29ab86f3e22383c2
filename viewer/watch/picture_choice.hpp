#pragma once
// What is looked at: a plane of a ring, alone or beside one of another ring, and what came of it.

#include <optional>
#include <string>
#include <vector>

#include "viewer/watch/carried.hpp"
#include "viewer/watch/picture_colours.hpp"

namespace carousel::viewer {

struct plane_choice {
    std::string stage;  ///< whose output; "": what the last sink reads
    std::string plane;  ///< plane_picture::name; "": its colours, or the first
    bool operator==(const plane_choice&) const = default;
};
struct picture_choice {
    plane_choice first;
    std::optional<plane_choice> beside = {};  ///< the same frame in another ring, to its right
    bool operator==(const picture_choice&) const = default;
};
/// Of the first, and of the one beside it.
struct picture_styles {
    picture_style of[2];
    bool operator==(const picture_styles&) const = default;
};

/// One of the pictures that are shown.
struct shown_picture {
    std::string stage, plane, type;   ///< type: of its elements, "f32"
    std::vector<std::string> planes;  ///< all that this ring has
    /// where it lies in the whole, in pixels of that; `zoom` x `zoom` of them are one of its own
    u32 x = 0, y = 0, width = 0, height = 0, zoom = 1;
    u64 ring_sequence = 0;
    picture_scale scale;
    carried_facts carried;
};
/// What lies at a pixel of the whole.
struct pointed_pixel {
    std::size_t which = 0;  ///< of the shown pictures
    u32 x = 0, y = 0;       ///< its own
    u64 ring_sequence = 0;
    std::string text;  ///< the exact value
};

/// "fragment depth f32 · frame 12": which picture this is.
[[nodiscard]] std::string name_of(const shown_picture& p);

// As people write it, on a command line and to the page.
/// "fragment", "fragment/depth".
[[nodiscard]] plane_choice plane_from_text(std::string_view text);
/// "auto", "extremes", or "LOW..HIGH".
[[nodiscard]] std::string range_text(const picture_style& style);
/// False: it is none of these, or LOW is not below HIGH; `style` stays as it is.
[[nodiscard]] bool read_range(std::string_view text, picture_style& style);
/// "auto" or a map's name.
[[nodiscard]] std::string colours_text(const picture_style& style);
[[nodiscard]] bool read_colours(std::string_view text, picture_style& style);

}  // namespace carousel::viewer
