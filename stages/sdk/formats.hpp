#pragma once
// The payload formats that Carousel's own stages exchange, including the format that a user's stage most
// often needs: an image.

#include <string_view>

#include "core/types.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel {

/// An image: plane 0 "color", u8[height][width][4], R G B A, sRGB, top row first, dense. 0 accepts any size
/// (for require_image).
[[nodiscard]] frame_format image_format(u32 width, u32 height);

/// The size of an image payload in pixels.
struct image_size {
    u32 width = 0, height = 0;
    [[nodiscard]] u64 bytes() const noexcept { return u64{width} * height * 4; }
};

/// Checks that the stage has exactly one input and that it is an image; returns its size. Throws config_error
/// with the required and the actual format.
[[nodiscard]] image_size require_image(const configuration& with);

/// Returns the only input of a stage that takes exactly one. Throws config_error; `what` (e.g. "a picture")
/// is part of its message.
[[nodiscard]] const input_description& require_one_input(const configuration& with, std::string_view what);

/// Throws config_error if a stage that generates its frames has inputs.
void require_no_inputs(const configuration& with);

}  // namespace carousel
