#pragma once
// How the frames of a ring are described to GStreamer: which planes are a picture, and its caps.

#include <gst/video/video.h>

#include <array>
#include <optional>
#include <string>

#include "core/types.hpp"
#include "frame/frame_format.hpp"
#include "stages/sdk/payload.hpp"

namespace carousel::gstreamer {

/// The caps of all pictures that the elements can exchange; also the text of the pads' templates.
inline constexpr const char* all_caps =
    "video/x-raw, format = (string) { RGBA, RGB, RGBA64_LE, GRAY8, NV12 }, width = (int) [ 1, max ], height "
    "= (int) [ 1, max ], framerate = (fraction) [ 0, max ]";

/// A picture in a slot: GStreamer's description of it, and where its planes are.
struct video_layout {
    GstVideoInfo info;  ///< without a frame rate; `offset` and `stride` are those of the slot
    u32 planes = 0;
    u64 first = 0, bytes = 0;  ///< the range of the slot that contains the planes
    bool is_packed = false;    ///< true if GStreamer's own layout of such a picture is the same
    [[nodiscard]] bool is_same_picture(const video_layout& other) const noexcept {
        return GST_VIDEO_INFO_FORMAT(&info) == GST_VIDEO_INFO_FORMAT(&other.info) &&
               info.width == other.info.width && info.height == other.info.height;
    }
};

/// Returns the layout of the pictures of that format. `used`: the used extents of a frame's planes; null: all
/// planes are used as a whole. Throws config_error, which lists the possible formats, if the format has no
/// picture that GStreamer can describe.
[[nodiscard]] video_layout layout_of(const ring::frame_format& format,
                                     const shm::used_extents* used = nullptr);

/// The caps of those pictures. `fps`: of the run; 0: any.
[[nodiscard]] GstCaps* caps_of(const video_layout& layout, f64 fps);

}  // namespace carousel::gstreamer
