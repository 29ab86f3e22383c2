#pragma once
// Reads the bound framebuffer. GL's rows start at the bottom, a picture's at the top.

#include <epoxy/gl.h>

#include <algorithm>
#include <vector>

#include "core/types.hpp"

namespace carousel::viewer {

[[nodiscard]] inline std::vector<u8> read_framebuffer(u32 width, u32 height) {
    std::vector<u8> rows(std::size_t{width} * height * 4);
    glPixelStorei(GL_PACK_ALIGNMENT, 4);
    glReadPixels(0, 0, static_cast<GLsizei>(width), static_cast<GLsizei>(height), GL_RGBA, GL_UNSIGNED_BYTE,
                 rows.data());
    const std::size_t stride = std::size_t{width} * 4;
    for (u32 y = 0; y < height / 2; ++y)
        std::swap_ranges(rows.begin() + static_cast<std::ptrdiff_t>(y * stride),
                         rows.begin() + static_cast<std::ptrdiff_t>((y + 1) * stride),
                         rows.begin() + static_cast<std::ptrdiff_t>((height - 1 - y) * stride));
    for (std::size_t k = 3; k < rows.size(); k += 4) rows[k] = 255;
    return rows;
}

}  // namespace carousel::viewer
