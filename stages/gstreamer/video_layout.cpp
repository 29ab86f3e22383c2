#include "stages/gstreamer/video_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"
#include "frame/image_format.hpp"

namespace carousel::gstreamer {
namespace {

struct known_plane {
    const char* name;
    u64 channels;  ///< 1: the plane has two dimensions
};
struct known_format {
    GstVideoFormat format;
    ring::element type;
    u32 planes;
    std::array<known_plane, 2> plane;
};

constexpr std::array known_formats{
    known_format{GST_VIDEO_FORMAT_RGBA, ring::element::u8_, 1, {{{"color", 4}}}},
    known_format{GST_VIDEO_FORMAT_RGB, ring::element::u8_, 1, {{{"color", 3}}}},
    known_format{GST_VIDEO_FORMAT_RGBA64_LE, ring::element::u16_, 1, {{{"color", 4}}}},
    known_format{GST_VIDEO_FORMAT_GRAY8, ring::element::u8_, 1, {{{"gray", 1}}}},
    known_format{GST_VIDEO_FORMAT_NV12, ring::element::u8_, 2, {{{"y", 1}, {"uv", 2}}}},
};

bool is_plane(const ring::plane& p, const known_plane& of, ring::element type) {
    if (p.type != type) return false;
    return of.channels == 1 ? p.shape.size() == 2 : p.shape.size() == 3 && p.shape[2] == of.channels;
}

/// The extents in use of a plane, and the distance of its rows in bytes.
struct plane_rows {
    u64 height = 0, width = 0, stride = 0;
};
plane_rows rows_of(const input_payload& planes, const known_format& known, u32 k) {
    const auto of = [](const auto& view) {
        return plane_rows{view.extent(0), view.extent(1), view.stride(0)};
    };
    const char* name = known.plane[k].name;
    return known.type == ring::element::u16_ ? of(planes.plane<const u16>(name))
                                             : of(planes.plane<const u8>(name));
}

void set_colours(GstVideoColorimetry& to, const ring::yuv_colours& from) {
    to.range = from.full_range ? GST_VIDEO_COLOR_RANGE_0_255 : GST_VIDEO_COLOR_RANGE_16_235;
    to.matrix = from.matrix == 601    ? GST_VIDEO_COLOR_MATRIX_BT601
                : from.matrix == 2020 ? GST_VIDEO_COLOR_MATRIX_BT2020
                                      : GST_VIDEO_COLOR_MATRIX_BT709;
    to.transfer = from.matrix == 601    ? GST_VIDEO_TRANSFER_BT601
                  : from.matrix == 2020 ? GST_VIDEO_TRANSFER_BT2020_12
                                        : GST_VIDEO_TRANSFER_BT709;
    to.primaries = from.matrix == 601    ? GST_VIDEO_COLOR_PRIMARIES_SMPTE170M
                   : from.matrix == 2020 ? GST_VIDEO_COLOR_PRIMARIES_BT2020
                                         : GST_VIDEO_COLOR_PRIMARIES_BT709;
}

const known_format* find_known(const ring::frame_format& format) {
    for (const known_format& known : known_formats) {
        bool all = true;
        for (u32 k = 0; k < known.planes; ++k) {
            const ring::plane* p = format.find(known.plane[k].name);
            all = all && p != nullptr && is_plane(*p, known.plane[k], known.type);
        }
        if (all) return &known;
    }
    return nullptr;
}

}  // namespace

video_layout layout_of(const ring::frame_format& format, const shm::used_extents* used) {
    const known_format* known = find_known(format);
    if (known == nullptr)
        throw config_error(fmt::format(
            "the frames have {}, which is not a picture that GStreamer can show: expected the planes "
            "color (u8 or u16, of 4 channels, or u8 of 3), gray (u8), or y and uv (u8, NV12)",
            format.describe()));
    // The used extents are looked up by the payload; the address is not read.
    static constexpr std::byte nothing{};
    const input_payload planes(&nothing, &format, used);
    video_layout out;
    const plane_rows main = rows_of(planes, *known, 0);
    gst_video_info_init(&out.info);
    if (gst_video_info_set_format(&out.info, known->format, static_cast<guint>(main.width),
                                  static_cast<guint>(main.height)) == FALSE)
        throw config_error(
            fmt::format("GStreamer can't describe pictures of {} x {} pixels", main.width, main.height));
    if (known->format == GST_VIDEO_FORMAT_NV12)
        set_colours(out.info.colorimetry, ring::colours_of(format, static_cast<u32>(main.height)));
    const GstVideoInfo own = out.info;
    out.planes = known->planes;
    u64 end = 0;
    out.first = ring::largest_slot_bytes;
    for (u32 k = 0; k < known->planes; ++k) {
        const ring::plane& p = *format.find(known->plane[k].name);
        out.first = std::min(out.first, p.offset);
        end = std::max(end, p.offset + p.bytes());
    }
    out.bytes = end - out.first;
    out.is_packed = true;
    for (u32 k = 0; k < known->planes; ++k) {
        const ring::plane& p = *format.find(known->plane[k].name);
        out.info.offset[k] = p.offset - out.first;
        out.info.stride[k] = static_cast<gint>(rows_of(planes, *known, k).stride);
        out.is_packed =
            out.is_packed && out.info.offset[k] == own.offset[k] && out.info.stride[k] == own.stride[k];
    }
    out.info.size = out.bytes;
    out.is_packed = out.is_packed && out.bytes == own.size;
    return out;
}

GstCaps* caps_of(const video_layout& layout, f64 fps) {
    GstCaps* caps =
        gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING,
                            gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&layout.info)), "width",
                            G_TYPE_INT, layout.info.width, "height", G_TYPE_INT, layout.info.height, nullptr);
    if (GST_VIDEO_INFO_FORMAT(&layout.info) == GST_VIDEO_FORMAT_NV12) {
        gchar* colours = gst_video_colorimetry_to_string(&layout.info.colorimetry);
        gst_caps_set_simple(caps, "colorimetry", G_TYPE_STRING, colours, nullptr);
        g_free(colours);
    }
    int numerator = 0, denominator = 1;
    if (fps > 0) {
        gst_util_double_to_fraction(fps, &numerator, &denominator);
        gst_caps_set_simple(caps, "framerate", GST_TYPE_FRACTION, numerator, denominator, nullptr);
    } else {
        gst_caps_set_simple(caps, "framerate", GST_TYPE_FRACTION_RANGE, 0, 1, G_MAXINT, 1, nullptr);
    }
    return caps;
}

}  // namespace carousel::gstreamer
