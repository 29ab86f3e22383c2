#pragma once
// The fields of a frame's messages, and their description as a FileDescriptorSet.

#include <string>

#include "stages/recording/mcap/record.hpp"

namespace carousel::stages {

inline constexpr const char* image_schema = "foxglove.RawImage";
inline constexpr const char* frame_schema = "carousel.Frame";

namespace frame_field {
inline constexpr u32 sequence = 1, born_ns = 2, time_s = 3, parameter_number = 4, parameters = 5, planes = 6;
}
namespace plane_field {
inline constexpr u32 name = 1, data = 2;
}
namespace image_field {
inline constexpr u32 timestamp = 1, width = 2, height = 3, encoding = 4, step = 5, data = 6, frame_id = 7,
                     carousel = 100;
}

/// `name`: one of the two.
[[nodiscard]] mcap::schema schema_of(const std::string& name, u16 id);

}  // namespace carousel::stages
