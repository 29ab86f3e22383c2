#pragma once
// Pictures of other programs: messages of the schema foxglove.RawImage (https://docs.foxglove.dev), as
// formats of rings.
//   encoding                                     frames
//   rgba8, rgb8, bgra8, bgr8 (8UC3)              rgba8
//   yuv422 (uyvy), yuv422_yuy2 (yuyv)            rgba8, by BT.601 with limited range
//   mono8 (8UC1)                                 gray8
//   mono16 (16UC1)                               rgba16, grey
//   32FC1                                        "depth" f32[height][width]

#include <span>
#include <string_view>

#include "frame/frame_format.hpp"
#include "stages/recording/mcap/record.hpp"

namespace carousel::stages {

struct raw_image {
    u64 time_ns = 0;  ///< 0: not stated
    u32 width = 0, height = 0;
    u64 step = 0;  ///< bytes from a row to the next
    std::string_view encoding;
    std::span<const std::byte> data;
};

/// Reads a message. Throws format_error if it is not a picture, or if its data are shorter than its size
/// requires.
[[nodiscard]] raw_image read_raw_image(std::span<const std::byte> message);
/// The format of frames with such pictures, laid out. Throws format_error for another encoding.
[[nodiscard]] ring::frame_format format_of(const raw_image& image);
/// Writes the picture into a slot of format_of(image).
void convert(const raw_image& image, const ring::frame_format& format, std::byte* slot);

}  // namespace carousel::stages
