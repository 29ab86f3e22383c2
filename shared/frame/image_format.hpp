#pragma once
// The formats of pictures that Carousel's own stages exchange, as frame formats: which planes they have, and
// how colours are stored.
//   format  type                    planes
//   rgba8   carousel.image.rgba8    "color" u8[height][width][4]: R G B A, sRGB
//   rgba16  carousel.image.rgba16   "color" u16[height][width][4]: the same with 16 bits per value
//   gray8   carousel.image.gray8    "gray" u8[height][width]: 0 is black, 255 is white
//   nv12    carousel.image.nv12     "y" u8[height][width], "uv" u8[height / 2][width / 2][2]: luma per pixel,
//   and
//                                   one pair of chroma values (blue, red) per 2 x 2 pixels; even sizes only
// Rows are dense, the top row is the first. An NV12 format has two constants, which are the same for all its
// frames: "yuv_matrix" (601, 709 or 2020) and "full_range" (0: luma from 16 to 235, chroma from 16 to 240; 1:
// 0 to 255).

#include <optional>
#include <string_view>

#include "core/types.hpp"
#include "frame/frame_format.hpp"

namespace carousel::ring {

enum class pixel_format : u8 { rgba8, rgba16, gray8, nv12 };
inline constexpr pixel_format pixel_formats[] = {pixel_format::rgba8, pixel_format::rgba16,
                                                 pixel_format::gray8, pixel_format::nv12};
[[nodiscard]] const char* name_of(pixel_format pixels) noexcept;  ///< "rgba8", "rgba16", "gray8", "nv12"
[[nodiscard]] std::optional<pixel_format> pixel_format_named(std::string_view name) noexcept;

/// How luma and chroma are computed from red, green and blue.
struct yuv_colours {
    u32 matrix = 709;  ///< 601, 709 or 2020, of the ITU-R recommendation BT.601 and so on
    bool full_range = false;
    bool operator==(const yuv_colours&) const = default;

    /// The weights of red and blue in the luma.
    [[nodiscard]] f64 red_part() const noexcept {
        return matrix == 601 ? 0.299 : matrix == 2020 ? 0.2627 : 0.2126;
    }
    [[nodiscard]] f64 blue_part() const noexcept {
        return matrix == 601 ? 0.114 : matrix == 2020 ? 0.0593 : 0.0722;
    }
};

/// The colours of a picture that does not state them: BT.709 from 720 rows on, BT.601 below, limited range.
[[nodiscard]] constexpr yuv_colours usual_colours(u32 height) noexcept {
    return {.matrix = height >= 720 ? 709U : 601U, .full_range = false};
}
/// Reads the constants of a frame format; a value that is missing is that of usual_colours(height).
[[nodiscard]] yuv_colours colours_of(const frame_format& format, u32 height);

/// A picture in a slot.
struct image_description {
    pixel_format pixels = pixel_format::rgba8;
    u32 width = 0, height = 0;
    yuv_colours colours;                ///< only nv12
    u64 first_plane = 0, uv_plane = 0;  ///< offsets from the slot's start; uv_plane: only nv12
};

/// Returns the format of such pictures, not laid out. A size of 0 accepts any size (for require_format).
/// Throws config_error for a size that the format cannot have.
[[nodiscard]] frame_format image_format_of(pixel_format pixels, u32 width, u32 height,
                                           const yuv_colours& colours = {});
/// Returns the picture that a laid out format describes; empty if it is not one of these formats.
[[nodiscard]] std::optional<image_description> image_in(const frame_format& format);

}  // namespace carousel::ring
