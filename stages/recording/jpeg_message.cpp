#include "stages/recording/jpeg_message.hpp"

#include <algorithm>

#include "frame/image_format.hpp"
#include "picture/rgba.hpp"
#include "stages/display/picture_file.hpp"
#include "stages/recording/protobuf.hpp"

namespace carousel::stages {
namespace {

/// The mean of each square of n x n pixels of a picture whose rows have `row` pixels.
void reduce(const std::byte* from, u32 row, u32 n, u32 width, u32 height, std::byte* to) {
    for (u32 y = 0; y < height; ++y)
        for (u32 x = 0; x < width; ++x)
            for (u32 c = 0; c < 4; ++c) {
                u32 sum = 0;
                for (u32 dy = 0; dy < n; ++dy)
                    for (u32 dx = 0; dx < n; ++dx)
                        sum += static_cast<u32>(from[((u64{y} * n + dy) * row + u64{x} * n + dx) * 4 + c]);
                *to++ = static_cast<std::byte>(sum / (n * n));
            }
}

}  // namespace

bool has_picture(const ring::frame_format& format) { return ring::image_in(format).has_value(); }

void jpeg_messages::put(mcap::buffer& to, const ring::frame_format& format, const std::string& ring,
                        const frame_facts& facts, u64 wall_ns, const std::byte* slot, u32 width) {
    const ring::image_description what = *ring::image_in(format);
    const std::byte* pixels = slot + what.first_plane;
    if (what.pixels != ring::pixel_format::rgba8) {
        rgba_.resize(u64{what.width} * what.height * 4);
        to_rgba8(what, slot, rgba_.data());
        pixels = rgba_.data();
    }
    const auto used = [&](u32 dimension) {
        return static_cast<u32>(ring::used_extent(format.planes.front(), 0, dimension, facts.used));
    };
    const u32 n = static_cast<u32>(std::max<u64>(1, div_ceil(used(1), width)));
    const u32 small_width = used(1) / n, small_height = used(0) / n;
    if (small_width == 0 || small_height == 0) return;
    small_.resize(u64{small_width} * small_height * 4);
    reduce(pixels, what.width, n, small_width, small_height, small_.data());
    const encoded_picture jpeg = encode_picture(picture_format::jpeg, small_, small_width, small_height);
    proto::writer w(to);
    w.message(jpeg_field::timestamp, [&](proto::writer& t) {
        t.varint(1, wall_ns / ns_per_s);
        t.varint(2, wall_ns % ns_per_s);
    });
    w.bytes(jpeg_field::data, jpeg.head);
    w.text(jpeg_field::format, "jpeg");
    w.text(jpeg_field::frame_id, ring);
}

}  // namespace carousel::stages
