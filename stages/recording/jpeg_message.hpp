#pragma once
// A frame's picture as a small JPEG in a message of its own, which programs that know nothing of Carousel
// can show: foxglove.CompressedImage.

#include <string>
#include <vector>

#include "stages/recording/frame_message.hpp"

namespace carousel::stages {

/// True if frames of that format have a picture (frame/image_format.hpp).
[[nodiscard]] bool has_picture(const ring::frame_format& format);

/// Makes JPEG messages. Its buffers are kept from frame to frame. One thread at a time.
class jpeg_messages {
public:
    /// Appends the message of a frame, at most `width` pixels wide: each pixel is the mean of a square of
    /// pixels. `slot`: a slot of that format, in memory that the CPU can read. Throws output_error.
    void put(mcap::buffer& to, const ring::frame_format& format, const std::string& ring,
             const frame_facts& facts, u64 wall_ns, const std::byte* slot, u32 width);

private:
    std::vector<std::byte> rgba_, small_;
};

}  // namespace carousel::stages
