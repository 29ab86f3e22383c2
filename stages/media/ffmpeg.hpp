#pragma once
// What the stages that use FFmpeg's libraries share: owners of its objects, error texts, options of a
// pipeline file, and its names of pixel formats and colours. Only for targets that link the libraries.

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/types.hpp"
#include "frame/image_format.hpp"

namespace carousel::stages::media {

struct freer {
    void operator()(AVCodecContext* c) const { avcodec_free_context(&c); }
    void operator()(AVFrame* f) const { av_frame_free(&f); }
    void operator()(AVPacket* p) const { av_packet_free(&p); }
    void operator()(SwsContext* s) const { sws_freeContext(s); }
};
template <typename T>
using owner = std::unique_ptr<T, freer>;

/// The text of a negative result of FFmpeg's functions: "Invalid data found when processing input".
[[nodiscard]] std::string error_text(int result);

/// `text` without control characters and bytes that are not ASCII, of at most `most` characters: for the
/// metadata of a frame.
[[nodiscard]] std::string plain_text(std::string_view text, std::size_t most);

/// Options by name, as the functions of FFmpeg that open something take them.
class options {
public:
    options() = default;
    explicit options(const std::map<std::string, std::string>& values);
    ~options() { av_dict_free(&all_); }
    options(const options& from) { av_dict_copy(&all_, from.all_, 0); }
    options& operator=(options from) noexcept {
        std::swap(all_, from.all_);
        return *this;
    }

    void set(const char* name, const std::string& value) { av_dict_set(&all_, name, value.c_str(), 0); }
    /// Sets a value unless there is one of that name.
    void set_default(const char* name, const std::string& value) {
        av_dict_set(&all_, name, value.c_str(), AV_DICT_DONT_OVERWRITE);
    }
    /// The argument for FFmpeg's functions, which remove the options that they know.
    [[nodiscard]] AVDictionary** argument() noexcept { return &all_; }
    /// The names that are left, with commas; "": none.
    [[nodiscard]] std::string left() const;

private:
    AVDictionary* all_ = nullptr;
};

[[nodiscard]] AVPixelFormat pixel_format_of(ring::pixel_format pixels) noexcept;

/// The colours of pictures that FFmpeg describes by these values. What is not specified is as in
/// ring::usual_colours(height).
[[nodiscard]] ring::yuv_colours colours_of(AVColorSpace space, AVColorRange range, AVPixelFormat pixels,
                                           u32 height) noexcept;
[[nodiscard]] AVColorSpace space_of(const ring::yuv_colours& colours) noexcept;
/// The primaries of the recommendation that defines the matrix.
[[nodiscard]] AVColorPrimaries primaries_of(const ring::yuv_colours& colours) noexcept;
[[nodiscard]] AVColorRange range_of(const ring::yuv_colours& colours) noexcept;

/// One side of a conversion.
struct picture_layout {
    AVPixelFormat pixels = AV_PIX_FMT_NONE;
    u32 width = 0, height = 0;
    ring::yuv_colours colours;  ///< of YUV formats; others have the full range
    bool operator==(const picture_layout&) const = default;
};

/// Converts pictures between sizes, pixel formats, matrices and ranges. The result is the same on every CPU.
/// To be used from one thread at a time.
class converter {
public:
    /// Does nothing if the sides are those of the previous call. Throws config_error if FFmpeg cannot
    /// convert.
    void prepare(const picture_layout& from, const picture_layout& to);
    void convert(const u8* const* from, const int* from_strides, u8* const* to, const int* to_strides);

private:
    picture_layout from_, to_;
    owner<SwsContext> sws_;
};

/// Keeps the last error that FFmpeg logs on this thread, instead of printing it to stderr. FFmpeg writes the
/// cause of a damaged packet only to its log. To be called once per process, before its libraries are used.
void collect_messages();
/// Returns the last error since the previous call, without the end of line; "": none.
[[nodiscard]] std::string take_message();

}  // namespace carousel::stages::media
