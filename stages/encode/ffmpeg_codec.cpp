#include "stages/encode/ffmpeg_codec.hpp"

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"
#include "stages/encode/ffmpeg_choice.hpp"
#include "stages/encode/units.hpp"

namespace carousel::stages::ffmpeg {
namespace {

constexpr int own_time_scale = 90'000;

/// The colours of an RGB picture become those of high-definition video (BT.709), in the range that players
/// expect. A YUV picture keeps its colours.
ring::yuv_colours encoded_colours(const encode_settings& with) {
    return with.pixels == ring::pixel_format::nv12 ? with.colours : ring::yuv_colours{};
}

/// The transfer of a YUV picture is not known here. RGB and grey pictures are sRGB.
void set_colours(AVCodecContext& to, const encode_settings& with) {
    const ring::yuv_colours colours = encoded_colours(with);
    const bool rgb = (av_pix_fmt_desc_get(to.pix_fmt)->flags & AV_PIX_FMT_FLAG_RGB) != 0;
    to.color_range = rgb ? AVCOL_RANGE_JPEG : media::range_of(colours);
    to.colorspace = rgb ? AVCOL_SPC_RGB : media::space_of(colours);
    to.color_primaries = media::primaries_of(colours);
    to.color_trc = with.pixels == ring::pixel_format::nv12 ? AVCOL_TRC_UNSPECIFIED : AVCOL_TRC_IEC61966_2_1;
}

}  // namespace

int check(int result, const std::string& what) {
    if (result >= 0) return result;
    const std::string more = media::take_message();
    throw output_error(fmt::format("{}: {}{}", what, media::error_text(result),
                                   more.empty() ? "" : fmt::format(" ({})", more)));
}

void refuse_rest(const media::options& rest, const char* encoder) {
    if (const std::string names = rest.left(); !names.empty())
        throw config_error(
            fmt::format("options: {}: neither the encoder {} nor the container has it (`ffmpeg -h "
                        "encoder={}` lists the encoder's options)",
                        names, encoder, encoder));
}

const AVOutputFormat* output_format(const encode_settings& with) {
    const char* name = "mp4";
    if (with.format == container::matroska) name = "matroska";
    if (with.format == container::mpegts) name = "mpegts";
    if (with.format == container::rtsp) name = "rtsp";
    if (with.format == container::flv) name = "flv";
    const AVOutputFormat* found = av_guess_format(name, nullptr, nullptr);
    if (found == nullptr) throw config_error(fmt::format("ffmpeg's libraries here can't write {}", name));
    return found;
}

codec::codec(const encode_settings& with, const AVOutputFormat& format, media::options& rest)
    : pixels_(media::pixel_format_of(with.pixels)), own_times_(with.own_times) {
    open(with, format, rest);
    prepare_pictures(with);
}

void codec::open(const encode_settings& with, const AVOutputFormat& format, media::options& rest) {
    const AVCodec& encoder = choose_encoder(with);
    const AVCodecID id = encoder.id;
    if (with.format == container::rtsp && id != AV_CODEC_ID_H264 && id != AV_CODEC_ID_HEVC &&
        id != AV_CODEC_ID_VP9 && id != AV_CODEC_ID_MPEG4)
        throw config_error(
            fmt::format("{} can't be sent by RTSP; use h264, hevc or vp9", avcodec_get_name(id)));
    if (with.format != container::rtsp &&
        avformat_query_codec(&format, encoder.id, FF_COMPLIANCE_NORMAL) == 0)
        throw config_error(
            fmt::format("{} can't be stored in {}; use a file that ends in .mkv, or another codec",
                        avcodec_get_name(encoder.id), name_of(with.format)));
    context_.reset(avcodec_alloc_context3(&encoder));
    AVCodecContext& c = *context_;
    c.width = static_cast<int>(with.width);
    c.height = static_cast<int>(with.height);
    c.framerate = {static_cast<int>(std::lround(with.fps * mp4_ticks)), static_cast<int>(mp4_ticks)};
    c.time_base =
        with.own_times ? AVRational{1, own_time_scale} : AVRational{c.framerate.den, c.framerate.num};
    c.pix_fmt = choose_pixels(with, encoder);
    set_colours(c, with);
    c.flags |= AV_CODEC_FLAG_BITEXACT;
    if ((format.flags & AVFMT_GLOBALHEADER) != 0) c.flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    add_defaults(rest, with, c);
    for (const auto& [key, value] : with.options) rest.set(key.c_str(), value);
    try {
        check(avcodec_open2(&c, &encoder, rest.argument()),
              fmt::format("the encoder {} refuses its settings", encoder.name));
    } catch (const output_error& e) {
        throw config_error(e.what());
    }
}

void codec::prepare_pictures(const encode_settings& with) {
    const AVCodecContext& c = *context_;
    frame_.reset(av_frame_alloc());
    packet_.reset(av_packet_alloc());
    frame_->format = c.pix_fmt;
    frame_->width = c.width;
    frame_->height = c.height;
    frame_->color_range = c.color_range;
    frame_->colorspace = c.colorspace;
    converts_ = pixels_ != c.pix_fmt;
    if (!converts_) return;
    check(av_frame_get_buffer(frame_.get(), 0), "the memory of a picture");
    converter_.prepare({pixels_, with.width, with.height, with.colours},
                       {c.pix_fmt, with.width, with.height, encoded_colours(with)});
}

void codec::fill(const picture_planes& picture) {
    check(av_frame_make_writable(frame_.get()), "the memory of a picture");
    int stride[4] = {};
    av_image_fill_linesizes(stride, pixels_, frame_->width);
    const u8* from[4] = {reinterpret_cast<const u8*>(picture.at[0]),
                         reinterpret_cast<const u8*>(picture.at[1])};
    converter_.convert(from, stride, frame_->data, frame_->linesize);
}

// Without a buffer that counts references, the encoder would copy the picture. The picture stays unchanged
// until the frame is committed, and by then the encoder has returned its packet.
void codec::wrap(const picture_planes& picture) {
    av_buffer_unref(&frame_->buf[0]);
    av_image_fill_linesizes(frame_->linesize, static_cast<AVPixelFormat>(frame_->format), frame_->width);
    for (std::size_t k = 0; k < picture.at.size(); ++k)
        frame_->data[k] = reinterpret_cast<u8*>(const_cast<std::byte*>(picture.at[k]));
    const int bytes = av_image_get_buffer_size(static_cast<AVPixelFormat>(frame_->format), frame_->width,
                                               frame_->height, 1);
    frame_->buf[0] = av_buffer_create(
        frame_->data[0], static_cast<std::size_t>(bytes), [](void*, u8*) {}, nullptr,
        AV_BUFFER_FLAG_READONLY);
    if (frame_->buf[0] == nullptr) check(AVERROR(ENOMEM), "the memory of a picture");
}

i64 codec::pts_of(u64 frame_number, u64 time_ns) noexcept {
    if (!own_times_) return static_cast<i64>(frame_number);
    const i64 at = static_cast<i64>(time_ns / 100'000 * 9 + time_ns % 100'000 * 9 / 100'000);
    return std::max(at, last_pts_ + 1);
}

AVPacket& codec::encode(u64 frame_number, u64 time_ns, const picture_planes& picture, bool key) {
    if (converts_)
        fill(picture);
    else
        wrap(picture);
    frame_->pts = last_pts_ = pts_of(frame_number, time_ns);
    frame_->pict_type = key ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
    check(avcodec_send_frame(context_.get(), frame_.get()), "encoding a picture");
    av_packet_unref(packet_.get());
    const int got = avcodec_receive_packet(context_.get(), packet_.get());
    if (got == AVERROR(EAGAIN))
        throw config_error(
            fmt::format("the encoder {} with these options returns a picture only after later ones (B-frames "
                        "or look-ahead), so a "
                        "frame would be committed before it is in the output; remove such options (bf, "
                        "rc-lookahead, lag-in-frames, "
                        "tune)",
                        name()));
    check(got, "encoding a picture");
    return *packet_;
}

}  // namespace carousel::stages::ffmpeg
