#pragma once
// The picture that the viewer shows: how it is chosen, which data its frame carries, and how it is saved as a
// file.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "session/newest_frame.hpp"
#include "viewer/watch/picture_colours.hpp"

namespace carousel::viewer {

// The data that a frame carries in addition to its picture, as text: its metadata, the used part of its
// planes, the frames of sampled inputs from which it was made, and the time since its capture.

/// Names and values, in the order in which the stages set them.
using carried_facts = std::vector<std::pair<std::string, std::string>>;

/// Lists the data that `frame` carries. `now`: CLOCK_MONOTONIC, in ns. The time since the capture is left out
/// if the capture time comes from a recording.
[[nodiscard]] carried_facts carried_by(const ring::frame_facts& frame, const ring::frame_format& format,
                                       u64 now);
/// Returns the names and values on one line, for example: exposure_ms 3.5 · camera "left". Returns "" if
/// there are none.
[[nodiscard]] std::string line_of(const carried_facts& facts);

// The choice of a picture (a plane of one ring, alone or next to a plane of another ring), and a description
// of the picture that is shown.

struct plane_choice {
    std::string stage;  ///< the stage whose output is shown; "": the stage whose output the last sink reads
    std::string plane;  ///< plane_picture::name; "": the colour plane if it is RGBA8, otherwise the first
                        ///< plane
    bool operator==(const plane_choice&) const = default;
};
struct picture_choice {
    plane_choice first;
    std::optional<plane_choice> compare = {};  ///< another ring, whose picture is shown on the right
    bool operator==(const picture_choice&) const = default;
};
/// The styles of the first picture and of the picture next to it.
struct picture_styles {
    picture_style of[2];
    bool operator==(const picture_styles&) const = default;
};

/// One of the pictures that are shown.
struct shown_picture {
    std::string stage, plane, type;   ///< `type` is the type of the plane's elements, e.g. "f32"
    std::vector<std::string> planes;  ///< all planes of this ring that can be shown
    std::vector<std::string>
        maps;  ///< the colour maps that can show this plane; empty: its colours are shown
    std::vector<std::string> channels;  ///< the channels that can be shown alone; may be empty
    /// position in the whole image, in pixels of the whole image; `zoom` x `zoom` of these pixels show one
    /// pixel of this picture
    u32 x = 0, y = 0, width = 0, height = 0, zoom = 1;
    u64 ring_sequence = 0;
    picture_scale scale;
    carried_facts carried;
};
/// The content of one pixel of the whole image.
struct pointed_pixel {
    std::size_t which = 0;  ///< index of the picture among those that are shown
    u32 x = 0, y = 0;       ///< position in that picture
    u64 ring_sequence = 0;
    std::string text;  ///< the exact value
};

/// Returns the picture's name for users: "fragment depth f32 · frame 12".
[[nodiscard]] std::string name_of(const shown_picture& p);

// Text forms of a choice, as they are written on a command line and in the dashboard.
/// Parses "fragment" or "fragment/depth".
[[nodiscard]] plane_choice plane_from_text(std::string_view text);
/// "auto", "extremes", or "LOW..HIGH".
[[nodiscard]] std::string range_text(const picture_style& style);
/// If the text has none of these forms, or if LOW is not less than HIGH, returns false and leaves `style`
/// unchanged.
[[nodiscard]] bool read_range(std::string_view text, picture_style& style);
/// "auto" or a map's name.
[[nodiscard]] std::string colours_text(const picture_style& style);
[[nodiscard]] bool read_colours(std::string_view text, picture_style& style);
/// A number of doublings: "0", "-1.5".
[[nodiscard]] std::string exposure_text(const picture_style& style);
[[nodiscard]] bool read_exposure(std::string_view text, picture_style& style);
[[nodiscard]] bool read_tone_map(std::string_view text, picture_style& style);
/// "all" or a channel's name. Any name is accepted, because the planes have different ones.
[[nodiscard]] std::string channel_text(const picture_style& style);
void read_channel(std::string_view text, picture_style& style);
/// What the texts above may be, for messages: "auto, extremes or LOW..HIGH".
inline constexpr const char *range_forms = "auto, extremes or LOW..HIGH",
                            *colour_forms = "auto, grey, viridis, labels, light or normals",
                            *exposure_forms = "a number from -16 to 16",
                            *tone_map_forms = "neutral, aces or linear";

// Saves the shown picture as a PNG file.

/// Returns the bytes of a PNG file. `pixels`: RGBA8, dense, top row first. Throws output_error.
[[nodiscard]] std::vector<std::byte> pack_picture(std::span<const u8> pixels, u32 width, u32 height);

/// Writes a PNG file. A regular file is replaced atomically (core/output_file.hpp). `pixels`: RGBA8,
/// dense, top row first. Throws output_error.
void write_picture(const std::string& path, std::span<const u8> pixels, u32 width, u32 height);

}  // namespace carousel::viewer
