#pragma once
// The picture that a viewer shows, as a PNG file.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::viewer {

/// The bytes of a PNG file. RGBA8, dense, top row first. Throws output_error.
[[nodiscard]] std::vector<std::byte> pack_picture(std::span<const u8> pixels, u32 width, u32 height);

/// Written whole: into a temporary file beside the target, then renamed. RGBA8, dense, top row first. Throws
/// output_error.
void write_picture(const std::string& path, std::span<const u8> pixels, u32 width, u32 height);

}  // namespace carousel::viewer
