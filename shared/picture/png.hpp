#pragma once
// Encodes pictures as PNG, optimised for speed: one fixed filter, the fast level of ISA-L's deflate, in
// stripes that several threads can compress concurrently.

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel {

/// Runs the parts of a task: calls body(k) for each k below `parts`, in any order and on any thread, and
/// returns when all calls have returned. Exceptions of `body` propagate to the caller.
using part_runner = std::function<void(u32 parts, const std::function<void(u32 part)>& body)>;

/// Runs all parts on the calling thread, in order.
void one_by_one(u32 parts, const std::function<void(u32 part)>& body);

/// Number of rows per stripe, chosen so that a stripe fits the private cache of a core. The number depends
/// only on the width, so that the same pixels always give the same file, with any number of threads.
[[nodiscard]] u32 png_stripe_rows(u32 width) noexcept;

/// Encodes width x height RGBA8 pixels (sRGB, dense rows, top row first). Each stripe of `stripe_rows` rows
/// (0: png_stripe_rows(width)) is compressed independently, as one part of `run`. Returns the PNG file. May
/// be called from any thread; several calls may run concurrently. Throws output_error.
[[nodiscard]] std::vector<std::byte> encode_png(std::span<const std::byte> rgba, u32 width, u32 height,
                                                const part_runner& run = one_by_one, u32 stripe_rows = 0);

}  // namespace carousel
