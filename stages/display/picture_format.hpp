#pragma once
// Formats of a picture's file, selected by the extension of its name.
//   .png          RGBA8, sRGB, lossless (png.hpp)
//   .jpg, .jpeg   quality 90, colour at half resolution (4:2:0); alpha is left out
//   .rgba         the raw pixels: width x height x 4 bytes, dense rows, top row first
//   .npy the same pixels after NumPy's header (version 1.0): shape (height, width, 4), '|u1'

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "picture/png.hpp"

namespace carousel::stages {

enum class picture_format : u8 { png, jpeg, rgba, npy };

/// Returns the format of a file name or extension; empty: it is none of them.
[[nodiscard]] std::optional<picture_format> picture_format_of(std::string_view name);
/// ".png, .jpg, .jpeg, .rgba or .npy", for messages.
[[nodiscard]] std::string_view picture_endings() noexcept;
/// Returns "" if this build can write that format, otherwise the missing part and a remedy.
[[nodiscard]] std::string_view why_not_written(picture_format format) noexcept;

/// A file: `head`, followed by the pixels themselves if `pixels_follow`; the pixels are not copied.
struct encoded_picture {
    std::vector<std::byte> head;
    bool pixels_follow = false;
};

/// Encodes width x height RGBA8 pixels (sRGB, dense rows, top row first). The result depends only on the
/// pixels and the format. Any thread. Throws output_error.
[[nodiscard]] encoded_picture encode_picture(picture_format format, std::span<const std::byte> rgba,
                                             u32 width, u32 height, const part_runner& run = one_by_one);

}  // namespace carousel::stages
