#pragma once
// Saves the shown picture as a PNG file.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::viewer {

/// Returns the bytes of a PNG file. `pixels`: RGBA8, dense, top row first. Throws output_error.
[[nodiscard]] std::vector<std::byte> pack_picture(std::span<const u8> pixels, u32 width, u32 height);

/// Writes a PNG file. A regular file is replaced atomically (core/output_file.hpp). `pixels`: RGBA8,
/// dense, top row first. Throws output_error.
void write_picture(const std::string& path, std::span<const u8> pixels, u32 width, u32 height);

}  // namespace carousel::viewer
