#pragma once
// Pictures as PNG, packed for time: one fixed filter, the fast level of ISA-L's deflate, in stripes that
// several threads may pack at once.

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel {

/// Who does the parts of a piece of work: calls body(k) for each k below `parts`, in any order and on any
/// thread, and returns when all are done. What a body throws comes out of it.
using part_runner = std::function<void(u32 parts, const std::function<void(u32 part)>& body)>;

/// All parts here, one after the other.
void one_by_one(u32 parts, const std::function<void(u32 part)>& body);

/// Rows of a stripe, so that it fits a core's own cache. A function of the picture's size alone, as the whole
/// file is one of the pixels: whoever packs it, and beside whom, the same picture has the same bytes.
[[nodiscard]] u32 png_stripe_rows(u32 width) noexcept;

/// Encodes width x height RGBA8 pixels (sRGB, dense rows, top row first). Tuned for time, not size. Each
/// stripe of `stripe_rows` rows is packed by itself, one part each. Any thread; several may encode at once.
/// Throws output_error.
[[nodiscard]] std::vector<std::byte> encode_png(std::span<const std::byte> rgba, u32 width, u32 height,
                                                const part_runner& run = one_by_one, u32 stripe_rows = 0);

}  // namespace carousel
