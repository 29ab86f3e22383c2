#include "stages/recording/raw_image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "frame/image_format.hpp"
#include "picture/rgba.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/recording/protobuf.hpp"

namespace carousel::stages {
namespace {

using mcap::format_error;
using ring::pixel_format;

constexpr u32 longest_side = 65536;

enum class layout : u8 { rgba, rgb, bgra, bgr, uyvy, yuyv, mono8, mono16, depth };
struct encoding_row {
    std::string_view name;
    layout as;
    u32 pixel_bytes;
};
constexpr std::array encodings{
    encoding_row{"rgba8", layout::rgba, 4},       encoding_row{"8UC4", layout::rgba, 4},
    encoding_row{"rgb8", layout::rgb, 3},         encoding_row{"bgra8", layout::bgra, 4},
    encoding_row{"bgr8", layout::bgr, 3},         encoding_row{"8UC3", layout::bgr, 3},
    encoding_row{"yuv422", layout::uyvy, 2},      encoding_row{"uyvy", layout::uyvy, 2},
    encoding_row{"yuv422_yuy2", layout::yuyv, 2}, encoding_row{"yuyv", layout::yuyv, 2},
    encoding_row{"mono8", layout::mono8, 1},      encoding_row{"8UC1", layout::mono8, 1},
    encoding_row{"mono16", layout::mono16, 2},    encoding_row{"16UC1", layout::mono16, 2},
    encoding_row{"32FC1", layout::depth, 4},
};

const encoding_row& row_of(std::string_view encoding) {
    for (const encoding_row& e : encodings)
        if (e.name == encoding) return e;
    throw format_error(
        fmt::format("a picture has the encoding \"{}\", which is not supported; expected rgba8, rgb8, bgra8, "
                    "bgr8, yuv422, "
                    "yuv422_yuy2, mono8, mono16 or 32FC1",
                    encoding.substr(0, 32)));
}

/// Pixels of `n` bytes, whose red, green and blue are at these places.
void convert_row(const std::byte* from, u32 width, u32 n, std::array<u32, 3> at, std::byte* to) {
    for (u32 x = 0; x < width; ++x, from += n, to += 4) {
        for (u32 c = 0; c < 3; ++c) to[c] = from[at[c]];
        to[3] = n == 4 ? from[3] : std::byte{255};
    }
}

/// Converts a row with the conversion of NV12, whose chroma values are shared by two rows: both are this one.
class yuv_rows {
public:
    yuv_rows(u32 width, bool luma_first)
        : width_(width), luma_first_(luma_first), y_(u64{width} * 2), uv_(width), rgba_(u64{width} * 8) {}
    void convert(const std::byte* from, std::byte* to) {
        for (u32 x = 0; x < width_; ++x) {
            y_[x] = y_[width_ + x] = from[2 * x + (luma_first_ ? 0 : 1)];
            uv_[x] = from[2 * x + (luma_first_ ? 1 : 0)];
        }
        nv12_to_rgba8(
            {y_.data(), width_, uv_.data(), width_, width_, 2, {.matrix = 601, .full_range = false}},
            rgba_.data());
        std::copy_n(rgba_.begin(), u64{width_} * 4, to);
    }

private:
    u32 width_;
    bool luma_first_;
    std::vector<std::byte> y_, uv_, rgba_;
};

void convert_mono16(const std::byte* from, u32 width, std::byte* to) {
    constexpr u16 opaque = 65535;
    for (u32 x = 0; x < width; ++x, from += 2, to += 8) {
        for (u32 c = 0; c < 3; ++c) std::memcpy(to + 2 * c, from, 2);
        std::memcpy(to + 6, &opaque, 2);
    }
}

}  // namespace

raw_image read_raw_image(std::span<const std::byte> message) {
    raw_image out;
    const bool whole = proto::read(message, [&](const proto::field& f) {
        if (f.number == image_field::timestamp)
            (void)proto::read(f.bytes, [&](const proto::field& t) {
                if (t.number == 1) out.time_ns += t.value * ns_per_s;
                if (t.number == 2) out.time_ns += t.value;
            });
        if (f.number == image_field::width) out.width = static_cast<u32>(f.value);
        if (f.number == image_field::height) out.height = static_cast<u32>(f.value);
        if (f.number == image_field::encoding) out.encoding = f.as_text();
        if (f.number == image_field::step) out.step = f.value;
        if (f.number == image_field::data) out.data = f.bytes;
    });
    if (!whole) throw format_error("a message is not a picture");
    const encoding_row& e = row_of(out.encoding);
    if (out.width == 0 || out.height == 0 || out.width > longest_side || out.height > longest_side)
        throw format_error(fmt::format("a picture has {} x {} pixels", out.width, out.height));
    if (e.as == layout::uyvy || e.as == layout::yuyv)
        if (out.width % 2 != 0) throw format_error(fmt::format("a picture in {} has an odd width", e.name));
    const u64 row = u64{out.width} * e.pixel_bytes;
    if (out.step == 0) out.step = row;
    if (out.step < row || out.step > std::numeric_limits<u32>::max() ||
        out.data.size() < out.step * (out.height - 1) + row)
        throw format_error(fmt::format("a picture of {} x {} pixels in {} has only {} bytes", out.width,
                                       out.height, e.name, out.data.size()));
    return out;
}

ring::frame_format format_of(const raw_image& image) {
    ring::frame_format out;
    switch (row_of(image.encoding).as) {
        case layout::mono8:
            out = ring::image_format_of(pixel_format::gray8, image.width, image.height);
            break;
        case layout::mono16:
            out = ring::image_format_of(pixel_format::rgba16, image.width, image.height);
            break;
        case layout::depth:
            out = {"carousel.depth.f32", {{"depth", ring::element::f32_, {image.height, image.width}}}, {}};
            break;
        default:
            out = ring::image_format_of(pixel_format::rgba8, image.width, image.height);
    }
    (void)out.lay_out();
    return out;
}

void convert(const raw_image& image, const ring::frame_format& format, std::byte* slot) {
    const ring::plane& p = format.planes.front();
    const u64 row = p.bytes() / image.height;
    const encoding_row& e = row_of(image.encoding);
    yuv_rows yuv(e.as == layout::uyvy || e.as == layout::yuyv ? image.width : 0, e.as == layout::yuyv);
    for (u32 y = 0; y < image.height; ++y) {
        const std::byte* from = image.data.data() + u64{y} * image.step;
        std::byte* to = slot + p.offset + u64{y} * row;
        switch (e.as) {
            case layout::rgba:
            case layout::rgb:
                convert_row(from, image.width, e.pixel_bytes, {0, 1, 2}, to);
                break;
            case layout::bgra:
            case layout::bgr:
                convert_row(from, image.width, e.pixel_bytes, {2, 1, 0}, to);
                break;
            case layout::uyvy:
            case layout::yuyv:
                yuv.convert(from, to);
                break;
            case layout::mono16:
                convert_mono16(from, image.width, to);
                break;
            case layout::mono8:
            case layout::depth:
                std::memcpy(to, from, static_cast<std::size_t>(row));
        }
    }
}

}  // namespace carousel::stages
