#pragma once
// Which of FFmpeg's encoders and pixel formats is used, and the options by which the encoder returns each
// picture at once.

#include "stages/encode/ffmpeg_codec.hpp"

namespace carousel::stages::ffmpeg {

/// Throws config_error if the codec is unknown or this build of the libraries has no encoder for it.
[[nodiscard]] const AVCodec& choose_encoder(const encode_settings& with);
/// Throws config_error if the encoder does not support settings.pixel_format.
[[nodiscard]] AVPixelFormat choose_pixels(const encode_settings& with, const AVCodec& encoder);
/// Adds the options of that encoder: no look-ahead, preset, quality or bit rate.
void add_defaults(media::options& to, const encode_settings& with, AVCodecContext& context);

}  // namespace carousel::stages::ffmpeg
