#pragma once
// Determines which planes of a ring are pictures, and where their pixels are.
//
// A plane with rows and columns is a picture: [rows, columns], [rows, columns, 1 to 4] or [1 to 4, rows,
// columns], dense or strided, of any element type. 8 bit with 3 or 4 channels are colours; all others are
// values, which are mapped to colours (picture_colours.hpp).
//
// NV12 (luma per pixel, two chroma values per 2 x 2 pixels) is recognised by name: one plane "nv12" u8[rows *
// 3 / 2, columns], or two planes "y" u8[rows, columns] and "uv" u8[rows / 2, columns / 2, 2] or u8[rows / 2,
// columns]. Planes of other names are NV12 if the format's type contains "nv12". The format's constants may
// specify more: "yuv_matrix" 601, 709 or 2020 (default: 709 from 720 rows on, 601 below), "full_range" 1
// (default: 16 to 235).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frame/frame_format.hpp"
#include "shm/frame_header.hpp"

namespace carousel::viewer {

enum class picture_kind : u8 {
    rgba,     ///< the bytes are already RGBA8
    colours,  ///< 8 bit, shown as they are
    values,
    nv12,
};

/// The part of a picture that its frame uses, in pixels.
struct picture_part {
    u32 width = ~0U, height = ~0U;
    bool operator==(const picture_part&) const = default;
};

struct plane_picture {
    std::string name;  ///< the plane's name; "y + uv" for two planes
    picture_kind kind = picture_kind::values;
    ring::element type = ring::element::u8_;
    u32 width = 0, height = 0, channels = 1;
    u64 offset = 0, bytes = 0;  ///< range in the slot that contains the whole picture
    u64 row_bytes = 0, pixel_bytes = 0, channel_bytes = 0;
    std::size_t index = 0;                      ///< index of the plane in the format; for two planes, that of
                                                ///< the first
    u32 row_dimension = 0;                      ///< the columns are the next dimension
    u64 chroma_at = 0, chroma_row = 0;          ///< nv12: relative to `offset`; bytes from row to row
    f64 red_part = 0.2126, blue_part = 0.0722;  ///< nv12: weights in the luma
    bool full_range = false;                    ///< nv12

    [[nodiscard]] bool is_rgba() const noexcept { return kind == picture_kind::rgba; }
    [[nodiscard]] const std::byte* at(const std::byte* begin, u32 x, u32 y, u32 channel = 0) const noexcept {
        return begin + y * row_bytes + x * pixel_bytes + channel * channel_bytes;
    }
    /// The used part, from the frame header's `used`.
    [[nodiscard]] picture_part used_of(const ring::frame_format& f, const shm::used_extents& used) const;
};

/// Every picture of a ring.
[[nodiscard]] std::vector<plane_picture> pictures_of(const ring::frame_format& format);
/// Returns the picture of that name; "": "color" if it is RGBA8, otherwise the first one. nullopt: there is
/// none.
[[nodiscard]] std::optional<plane_picture> picture_of(const ring::frame_format& format,
                                                      std::string_view name = "");

}  // namespace carousel::viewer
