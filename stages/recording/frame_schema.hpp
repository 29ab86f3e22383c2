#pragma once
// The fields of a frame's messages, and their description as a FileDescriptorSet.

#include <string>

#include "stages/recording/mcap/record.hpp"

namespace carousel::stages {

inline constexpr const char* image_schema = "foxglove.RawImage";
inline constexpr const char* frame_schema = "carousel.Frame";

namespace frame_field {
inline constexpr u32 frame_number = 1, born_ns = 2, time_s = 3, parameter_number = 4, parameters = 5,
                     planes = 6, capture_ns = 7, metadata = 8;
}
namespace plane_field {
inline constexpr u32 name = 1, data = 2, used = 3;
}
/// The number of an entry's kind in frame/metadata.hpp is one less than its field here.
namespace entry_field {
inline constexpr u32 key = 1, truth = 2, whole = 3, natural = 4, number = 5, text = 6, bytes = 7;
}
namespace image_field {
inline constexpr u32 timestamp = 1, width = 2, height = 3, encoding = 4, step = 5, data = 6, frame_id = 7,
                     carousel = 100;
}

/// `name`: image_schema or frame_schema.
[[nodiscard]] mcap::schema schema_of(const std::string& name, u16 id);

}  // namespace carousel::stages
