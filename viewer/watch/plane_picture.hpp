#pragma once
// Any plane as a picture for eyes: 8 bit colour and grey as they are; 16 bit, whole numbers and floats
// between the smallest and the largest value of the frame, whole numbers in grey, floats (depth, scores) in
// colours from blue to red. Values that are no number are black.

#include <optional>

#include "ring/frame_format.hpp"

namespace carousel::viewer {

struct plane_picture {
    ring::plane plane;
    u32 width = 0, height = 0, channels = 1;
    /// Its bytes are RGBA8 already.
    [[nodiscard]] bool is_rgba() const noexcept { return plane.type == ring::element::u8_ && channels == 4; }
};

/// The plane of a ring that is shown: "color" where it is RGBA8, else the first that has rows and columns, is
/// dense, and has one value a pixel, or 3 or 4 of 8 bit. Nothing: there is none.
[[nodiscard]] std::optional<plane_picture> picture_of(const ring::frame_format& format);

/// The range of the values: smallest and largest number. Equal where there is none.
struct value_range {
    f64 low = 0, high = 0;
};
/// The part of a picture that its frame uses: what lies beyond it is black, and counts for no range.
struct picture_part {
    u32 width = ~0U, height = ~0U;
};
/// Writes width x height RGBA8 pixels; `from`: the plane's bytes, for the CPU.
value_range to_rgba(const plane_picture& p, const std::byte* from, std::byte* to, picture_part used = {});
/// The same of pixels that are there already.
void blacken_unused(u32 width, u32 height, picture_part used, std::byte* rgba);

}  // namespace carousel::viewer
