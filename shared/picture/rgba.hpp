#pragma once
// Converts pictures of all formats to RGBA8, for programs that show or store them.

#include <cstddef>

#include "core/types.hpp"
#include "frame/image_format.hpp"

namespace carousel {

/// The planes of an NV12 picture in memory that the CPU can read; strides in bytes.
struct nv12_picture {
    const std::byte* y = nullptr;
    u64 y_stride = 0;
    const std::byte* uv = nullptr;
    u64 uv_stride = 0;
    u32 width = 0, height = 0;
    ring::yuv_colours colours;
};

/// Writes width x height pixels, R G B A in dense rows, to `rgba`; A is 255. Each pair of chroma values
/// applies to its 2 x 2 pixels as it is. The values are those of the exact equations of BT.601, BT.709 or
/// BT.2020, rounded, with an error of at most 1.
void nv12_to_rgba8(const nv12_picture& from, std::byte* rgba);

/// Converts the picture in `slot` in the same way. Values of 16 bits are rounded to 8 bits.
void to_rgba8(const ring::image_description& what, const std::byte* slot, std::byte* rgba);

}  // namespace carousel
