#pragma once
// A picture made small: each pixel the mean of those that it stands for.

#include <cstddef>
#include <string>

#include "core/types.hpp"

namespace carousel::viewer {

struct small_picture {
    u32 width = 0, height = 0;
    std::string rgb;  ///< 3 bytes a pixel, top row first
};

/// The largest picture of the same shape within max_width x max_height (both at least 1), never larger than
/// the given one. `rgba`: 4 bytes a pixel, top row first, dense.
[[nodiscard]] small_picture shrink(const std::byte* rgba, u32 width, u32 height, u32 max_width,
                                   u32 max_height);

}  // namespace carousel::viewer
