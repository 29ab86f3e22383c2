// libcarousel-film.so: film_encoder based on ffmpeg's libraries. Each picture leaves the encoder at once (no
// B-frames, no look-ahead) and becomes one fragment, so that the picture is in the file when its frame is
// committed.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/cgroup.hpp"
#include "core/errors.hpp"
#include "stages/display/film_encoder.hpp"

namespace carousel::stages {
namespace {

struct freer {
    void operator()(AVCodecContext* c) const { avcodec_free_context(&c); }
    void operator()(AVFrame* f) const { av_frame_free(&f); }
    void operator()(AVPacket* p) const { av_packet_free(&p); }
    void operator()(SwsContext* s) const { sws_freeContext(s); }
    void operator()(AVFormatContext* f) const {
        if (f->pb != nullptr) {
            av_freep(&f->pb->buffer);
            avio_context_free(&f->pb);
        }
        avformat_free_context(f);
    }
};

int check(int result, const char* what) {
    if (result >= 0) return result;
    char text[AV_ERROR_MAX_STRING_SIZE] = {};
    av_strerror(result, text, sizeof text);
    throw output_error(fmt::format("creating the film: {}: {}", what, text));
}

#if LIBAVFORMAT_VERSION_MAJOR >= 61
using written_bytes = const u8*;
#else
using written_bytes = u8*;
#endif
int collect(void* to, written_bytes bytes, int count) {
    static_cast<std::vector<u8>*>(to)->insert(static_cast<std::vector<u8>*>(to)->end(), bytes, bytes + count);
    return count;
}

const AVCodec* find_encoder() {
    for (const char* name : {"libx264", "libopenh264", "mpeg4"})
        if (const AVCodec* found = avcodec_find_encoder_by_name(name)) return found;
    throw output_error(
        "creating the film: ffmpeg's libraries here have none of the encoders libx264, libopenh264 and "
        "mpeg4");
}

// The slices of one picture are encoded concurrently. Each slice makes the file slightly larger, and more
// than eight slices make the encoder hardly faster.
int slice_threads() { return std::clamp(static_cast<int>(usable_cores()), 1, 8); }

class ffmpeg_encoder final : public film_encoder {
public:
    ffmpeg_encoder(u32 width, u32 height, f64 fps)
        : width_(static_cast<int>(width)), height_(static_cast<int>(height)) {
        av_log_set_level(AV_LOG_ERROR);
        open_codec(fps);
        open_format();
        // The colours are those of high-definition video (BT.709), in the range that players expect.
        sws_.reset(sws_getContext(width_, height_, AV_PIX_FMT_RGBA, width_, height_, codec_->pix_fmt,
                                  SWS_BILINEAR, nullptr, nullptr, nullptr));
        if (!sws_)
            throw output_error("creating the film: no conversion from RGBA to the encoder's pixel format");
        sws_setColorspaceDetails(sws_.get(), sws_getCoefficients(SWS_CS_ITU709), 1,
                                 sws_getCoefficients(SWS_CS_ITU709), 0, 0, 1 << 16, 1 << 16);
    }

    [[nodiscard]] const std::vector<u8>& heading() const override { return heading_; }

    [[nodiscard]] std::vector<u8> encode(u64 frame_number, std::span<const std::byte> rgba) override {
        check(av_frame_make_writable(frame_.get()), "a picture's memory");
        const u8* from[] = {reinterpret_cast<const u8*>(rgba.data())};
        const int stride[] = {width_ * 4};
        sws_scale(sws_.get(), from, stride, 0, height_, frame_->data, frame_->linesize);
        frame_->pts = static_cast<i64>(frame_number);
        check(avcodec_send_frame(codec_.get(), frame_.get()), "encoding");
        check(avcodec_receive_packet(codec_.get(), packet_.get()),
              "encoding (the encoder returned no packet for a picture)");
        packet_->duration = 1;
        av_packet_rescale_ts(packet_.get(), codec_->time_base, format_->streams[0]->time_base);
        packet_->stream_index = 0;
        bytes_.clear();
        check(av_write_frame(format_.get(), packet_.get()), "a fragment");
        check(av_write_frame(format_.get(), nullptr), "a fragment's end");
        avio_flush(format_->pb);
        av_packet_unref(packet_.get());
        std::vector<u8> fragment = std::move(bytes_);
        bytes_ = {};
        if (!stamp_fragment(fragment, frame_number))
            throw output_error(
                "creating the film: the muxer's fragment is not as expected: check whether the ffmpeg "
                "version is much newer");
        return fragment;
    }

private:
    void open_codec(f64 fps) {
        const AVCodec* encoder = find_encoder();
        codec_.reset(avcodec_alloc_context3(encoder));
        codec_->width = width_;
        codec_->height = height_;
        codec_->time_base = {static_cast<int>(film_ticks), static_cast<int>(std::lround(fps * film_ticks))};
        codec_->framerate = {codec_->time_base.den, codec_->time_base.num};
        // Colour at half resolution (4:2:0) needs even sizes.
        const bool even = width_ % 2 == 0 && height_ % 2 == 0;
        codec_->pix_fmt =
            even || std::string_view(encoder->name) != "libx264" ? AV_PIX_FMT_YUV420P : AV_PIX_FMT_YUV444P;
        codec_->color_range = AVCOL_RANGE_MPEG;
        codec_->colorspace = AVCOL_SPC_BT709;
        codec_->color_primaries = AVCOL_PRI_BT709;
        codec_->color_trc = AVCOL_TRC_IEC61966_2_1;
        codec_->max_b_frames = 0;
        codec_->gop_size = 60;
        codec_->thread_count = slice_threads();
        codec_->thread_type = FF_THREAD_SLICE;
        codec_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT;
        AVDictionary* options = nullptr;
        av_dict_set(&options, "preset", "veryfast", 0);
        av_dict_set(&options, "tune", "zerolatency", 0);
        av_dict_set(&options, "crf", "18", 0);
        const int opened = avcodec_open2(codec_.get(), encoder, &options);
        av_dict_free(&options);
        check(opened, encoder->name);
        frame_.reset(av_frame_alloc());
        packet_.reset(av_packet_alloc());
        frame_->format = codec_->pix_fmt;
        frame_->width = width_;
        frame_->height = height_;
        frame_->color_range = codec_->color_range;
        frame_->colorspace = codec_->colorspace;
        check(av_frame_get_buffer(frame_.get(), 0), "a picture's memory");
    }

    void open_format() {
        AVFormatContext* format = nullptr;
        check(avformat_alloc_output_context2(&format, nullptr, "mp4", nullptr), "the MP4 writer");
        format_.reset(format);
        constexpr int buffer_bytes = 64 * 1024;
        format->pb = avio_alloc_context(static_cast<unsigned char*>(av_malloc(buffer_bytes)), buffer_bytes, 1,
                                        &bytes_, nullptr, collect, nullptr);
        format->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT;
        AVStream* stream = avformat_new_stream(format, nullptr);
        check(avcodec_parameters_from_context(stream->codecpar, codec_.get()), "the stream's description");
        stream->time_base = {1, codec_->time_base.den};
        stream->avg_frame_rate = codec_->framerate;
        AVDictionary* options = nullptr;
        av_dict_set(&options, "movflags", "empty_moov+default_base_moof+frag_custom+frag_discont", 0);
        av_dict_set(&options, "use_editlist", "0", 0);
        av_dict_set_int(&options, "video_track_timescale", codec_->time_base.den, 0);
        const int written = avformat_write_header(format, &options);
        av_dict_free(&options);
        check(written, "the film's header");
        avio_flush(format->pb);
        heading_ = std::move(bytes_);
        bytes_ = {};
        if (format->streams[0]->time_base.den != codec_->time_base.den)
            throw output_error("creating the film: the MP4 writer uses another time scale");
    }

    int width_, height_;
    std::vector<u8> bytes_, heading_;
    std::unique_ptr<AVCodecContext, freer> codec_;
    std::unique_ptr<AVFormatContext, freer> format_;
    std::unique_ptr<AVFrame, freer> frame_;
    std::unique_ptr<AVPacket, freer> packet_;
    std::unique_ptr<SwsContext, freer> sws_;
};

}  // namespace
}  // namespace carousel::stages

extern "C" __attribute__((visibility("default"))) carousel::stages::film_encoder* carousel_make_film_encoder(
    carousel::u32 width, carousel::u32 height, carousel::f64 fps, std::string& why) {
    try {
        return new carousel::stages::ffmpeg_encoder(width, height, fps);
    } catch (const std::exception& e) {
        why = e.what();
        return nullptr;
    }
}
