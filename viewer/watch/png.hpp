#pragma once
// Pictures as PNG files, written whole: into a temporary file beside the target, then renamed.

#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::viewer {

/// The bytes of a PNG file. RGBA8, dense, top row first. Throws output_error.
[[nodiscard]] std::vector<u8> encode_png(std::span<const u8> pixels, u32 width, u32 height);

/// RGBA8, dense, top row first. Throws output_error.
void write_png(const std::string& path, std::span<const u8> pixels, u32 width, u32 height);

}  // namespace carousel::viewer
