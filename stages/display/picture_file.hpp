#pragma once
// Picture files: their formats and folders.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "picture/png.hpp"

namespace carousel::stages {

// Formats of a picture's file, selected by the extension of its name.
//   .png          RGBA8, sRGB, lossless (png.hpp)
//   .jpg, .jpeg   quality 90, colour at half resolution (4:2:0); alpha is left out
//   .rgba         the raw pixels: width x height x 4 bytes, dense rows, top row first
//   .npy the same pixels after NumPy's header (version 1.0): shape (height, width, 4), '|u1'

enum class picture_format : u8 { png, jpeg, rgba, npy };

/// Returns the format that a file name or an extension selects; empty: the name selects no picture format.
[[nodiscard]] std::optional<picture_format> picture_format_of(std::string_view name);
/// Returns the list of extensions for messages: ".png, .jpg, .jpeg, .rgba or .npy".
[[nodiscard]] std::string_view picture_endings() noexcept;
/// Returns "" if this build can write that format, otherwise the missing part and a remedy.
[[nodiscard]] std::string_view why_not_written(picture_format format) noexcept;

/// A file: `head`, followed by the pixels themselves if `pixels_follow` is true; the pixels are not copied
/// into this object.
struct encoded_picture {
    std::vector<std::byte> head;
    bool pixels_follow = false;
};

/// Encodes width x height RGBA8 pixels (sRGB, dense rows, top row first). The result depends only on the
/// pixels and the format. Any thread. Throws output_error.
[[nodiscard]] encoded_picture encode_picture(picture_format format, std::span<const std::byte> rgba,
                                             u32 width, u32 height, const part_runner& run = one_by_one);

// Picture files and their folder.

/// Writes `bytes`, then `rest`, to `path` in the same way as write_output_file (core/output_file.hpp). Throws
/// output_error that names the file, the cause and the remedy.
void write_picture_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                        const std::function<bool()>& wanted = {}, std::span<const std::byte> rest = {});

/// Creates `folder` (and its parents) and tries to write there. Removes the temporary files of processes that
/// were killed during write_picture_file. Throws output_error.
void prepare_folder(const std::filesystem::path& folder);

}  // namespace carousel::stages
