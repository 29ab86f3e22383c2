#pragma once
// Pictures as PNG files, written whole: into a temporary file beside the target, then renamed.

#include <span>
#include <string>

#include "core/types.hpp"

namespace carousel::viewer {

/// RGBA8, dense, top row first. Throws output_error.
void write_png(const std::string& path, std::span<const u8> pixels, u32 width, u32 height);

}  // namespace carousel::viewer
