#pragma once
// An encoder of FFmpeg's libraries: one picture in, one packet out.

#include <memory>
#include <string>

#include "stages/encode/encoder.hpp"
#include "stages/media/ffmpeg.hpp"

namespace carousel::stages::ffmpeg {

/// Throws output_error with FFmpeg's reason and its last message if `result` is negative.
int check(int result, const std::string& what);
/// Throws config_error if an option is left that neither the encoder nor the container has.
void refuse_rest(const media::options& rest, const char* encoder);

/// Returns the output format for a container. Throws config_error if this build of the libraries lacks it.
[[nodiscard]] const AVOutputFormat* output_format(const encode_settings& with);

/// An opened encoder.
class codec {
public:
    /// Options that the encoder does not have stay in `rest`. Throws config_error.
    codec(const encode_settings& with, const AVOutputFormat& format, media::options& rest);

    /// Encodes one picture. The packet is valid until the next call. Throws config_error if the encoder keeps
    /// the picture back, output_error for other failures.
    [[nodiscard]] AVPacket& encode(u64 frame_number, u64 time_ns, const picture_planes& picture, bool key);
    [[nodiscard]] const AVCodecContext& context() const noexcept { return *context_; }
    [[nodiscard]] const char* name() const noexcept { return context_->codec->name; }

private:
    void open(const encode_settings& with, const AVOutputFormat& format, media::options& rest);
    void prepare_pictures(const encode_settings& with);
    void fill(const picture_planes& picture);
    void wrap(const picture_planes& picture);
    [[nodiscard]] i64 pts_of(u64 frame_number, u64 time_ns) noexcept;

    AVPixelFormat pixels_;  ///< of the pictures that come in
    bool own_times_;
    bool converts_ = false;
    i64 last_pts_ = -1;
    media::owner<AVCodecContext> context_;
    media::owner<AVFrame> frame_;
    media::owner<AVPacket> packet_;
    media::converter converter_;
};

}  // namespace carousel::stages::ffmpeg
