#pragma once
// Scales a picture down: each pixel is the mean of the pixels that it covers.

#include <cstddef>
#include <string>

#include "core/types.hpp"

namespace carousel::viewer {

struct small_picture {
    u32 width = 0, height = 0;
    std::string rgb;  ///< 3 bytes per pixel, top row first
};

/// Returns the largest picture of the same aspect ratio within max_width x max_height (both at least 1),
/// never larger than the original. `rgba`: 4 bytes per pixel, top row first, dense.
[[nodiscard]] small_picture shrink(const std::byte* rgba, u32 width, u32 height, u32 max_width,
                                   u32 max_height);

}  // namespace carousel::viewer
