#pragma once
// The message of a recording that contains a frame of one ring, and the schema of such messages.

#include <span>
#include <string>
#include <vector>

#include "frame/metadata.hpp"
#include "stages/recording/mcap/record.hpp"

namespace carousel::stages {

// The fields of a frame's messages, and their description as a FileDescriptorSet.

inline constexpr const char* image_schema = "foxglove.RawImage";
inline constexpr const char* frame_schema = "carousel.Frame";
inline constexpr const char* jpeg_schema = "foxglove.CompressedImage";

namespace frame_field {
inline constexpr u32 frame_number = 1, born_ns = 2, time_s = 3, parameter_number = 4, parameters = 5,
                     planes = 6, capture_ns = 7, metadata = 8;
}
namespace plane_field {
inline constexpr u32 name = 1, data = 2, used = 3;
}
/// The value of an entry is in the field whose number is one higher than the number of the entry's kind in
/// frame/metadata.hpp.
namespace entry_field {
inline constexpr u32 key = 1, truth = 2, whole = 3, natural = 4, number = 5, text = 6, bytes = 7;
}
namespace image_field {
inline constexpr u32 timestamp = 1, width = 2, height = 3, encoding = 4, step = 5, data = 6, frame_id = 7,
                     carousel = 100;
}

namespace jpeg_field {
inline constexpr u32 timestamp = 1, data = 2, format = 3, frame_id = 4;
}

/// `name`: image_schema, frame_schema or jpeg_schema.
[[nodiscard]] mcap::schema schema_of(const std::string& name, u16 id);

// A frame of one ring as a message of a recording, in Protocol Buffers:
//   message carousel.Frame { fixed64 frame_number = 1; fixed64 born_ns = 2; double time_s = 3;
//                            fixed64 parameter_number = 4; bytes parameters = 5; repeated Plane planes = 6;
//                            fixed64 capture_ns = 7; repeated Entry metadata = 8; }
//   message carousel.Plane { string name = 1; bytes data = 2; repeated fixed64 used = 3; }
//   message carousel.Entry { string key = 1; one of: bool truth = 2; sfixed64 whole = 3; fixed64 natural = 4;
//                            double number = 5; string text = 6; bytes bytes = 7; }
// `used`: the extents of a plane that the frame uses in part; the data end after the last element in use. A
// ring with pictures is stored as foxglove.RawImage (https://docs.foxglove.dev), with its carousel.Frame in
// field 100. The picture is in `data`, with the size of the part in use, and its Plane has no data; other
// planes are in the frame. A schema in the file describes both messages, so that other programs can read them
// completely.

using ring::frame_facts;

/// "foxglove.RawImage" or "carousel.Frame".
[[nodiscard]] std::string schema_name(const ring::frame_format& format);

/// Appends the message. `slot`: a slot of that format, in memory that the CPU can read. `wall_ns`: the
/// wall-clock time, for other programs.
void put_frame(mcap::buffer& to, const ring::frame_format& format, const std::string& ring,
               const frame_facts& facts, u64 wall_ns, const std::byte* slot);

/// Reads the facts. Copies the planes to their places in `slot`, unless `slot` is null. Throws format_error
/// if the bytes are not such a message, or if planes are missing or have another size.
[[nodiscard]] frame_facts take_frame(std::span<const std::byte> message, const ring::frame_format& format,
                                     std::byte* slot);

}  // namespace carousel::stages
