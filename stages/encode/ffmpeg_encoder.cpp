// libcarousel-film.so: encoder based on ffmpeg's libraries. Each picture leaves the encoder at once (no
// B-frames, no look-ahead) and becomes one unit, so that the picture is in the output when its frame is
// committed.
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "stages/encode/ffmpeg_codec.hpp"
#include "stages/encode/units.hpp"

namespace carousel::stages {
namespace {

using ffmpeg::check;

#if LIBAVFORMAT_VERSION_MAJOR >= 61
using written_bytes = const u8*;
#else
using written_bytes = u8*;
#endif
int collect(void* to, written_bytes bytes, int count) {
    static_cast<std::vector<u8>*>(to)->insert(static_cast<std::vector<u8>*>(to)->end(), bytes, bytes + count);
    return count;
}

/// Frees a writer, and the memory or connection that it writes to.
struct writer_freer {
    void operator()(AVFormatContext* f) const {
        if (f->pb != nullptr && (f->flags & AVFMT_FLAG_CUSTOM_IO) != 0) {
            av_freep(&f->pb->buffer);
            avio_context_free(&f->pb);
        } else if (f->pb != nullptr && (f->oformat->flags & AVFMT_NOFILE) == 0) {
            avio_closep(&f->pb);
        }
        avformat_free_context(f);
    }
};

class ffmpeg_encoder final : public encoder {
public:
    explicit ffmpeg_encoder(const encode_settings& with)
        : with_(with), format_(*ffmpeg::output_format(with)), codec_(with, format_, rest_) {
        if (with.network)
            connect();
        else
            write_to_memory();
    }

    [[nodiscard]] const std::vector<u8>& heading() const override { return heading_; }

    [[nodiscard]] encoded_frame encode(u64 frame_number, u64 time_ns, const picture_planes& picture,
                                       bool key) override {
        AVPacket& packet = codec_.encode(frame_number, time_ns, picture, key);
        const AVStream& stream = *writer_->streams[0];
        packet.duration = with_.own_times ? 0 : 1;
        av_packet_rescale_ts(&packet, codec_.context().time_base, stream.time_base);
        packet.stream_index = 0;
        encoded_frame out;
        out.key = (packet.flags & AV_PKT_FLAG_KEY) != 0;
        const i64 time = packet.dts;
        bytes_.clear();
        begin_wait();
        written(av_write_frame(writer_.get(), &packet));
        if ((format_.flags & AVFMT_ALLOW_FLUSH) != 0) written(av_write_frame(writer_.get(), nullptr));
        if (writer_->pb != nullptr) {
            avio_flush(writer_->pb);
            written(writer_->pb->error);
        }
        out.bytes = std::exchange(bytes_, {});
        stamp(out.bytes, frame_number, static_cast<u64>(time));
        return out;
    }

    void close() override {
        if (!with_.network || closed_) return;
        closed_ = true;
        begin_wait();
        written(av_write_trailer(writer_.get()));
    }

private:
    void written(int result) const {
        if (result == AVERROR_EXIT)  // by the interrupt callback
            throw output_error(
                fmt::format("writing to {}: the receiver has taken nothing for {} s (key timeout_s)",
                            with_.url, with_.timeout_s));
        check(result,
              with_.network ? fmt::format("writing to {}", with_.url) : "making a part of the output");
    }

    void stamp(std::vector<u8>& unit, u64 frame_number, u64 time) const {
        bool done = true;
        if (with_.network || with_.format == container::mpegts || with_.format == container::flv) return;
        if (with_.format == container::matroska) {
            unit = stamp_cluster(unit, frame_number);
            done = !unit.empty();
        } else {
            done = stamp_fragment(unit, frame_number, with_.own_times ? time : frame_number * mp4_ticks);
        }
        if (!done)
            throw output_error(
                fmt::format("the {} writer of ffmpeg's libraries makes other parts than expected: check "
                            "whether their version is much newer",
                            name_of(with_.format)));
    }

    void make_writer(const char* url) {
        AVFormatContext* writer = nullptr;
        check(avformat_alloc_output_context2(&writer, &format_, nullptr, url), "creating the writer");
        writer_.reset(writer);
        writer->flags |= AVFMT_FLAG_BITEXACT | AVFMT_FLAG_FLUSH_PACKETS;
        writer->interrupt_callback = {
            [](void* of) { return static_cast<ffmpeg_encoder*>(of)->is_overdue() ? 1 : 0; }, this};
        AVStream* stream = avformat_new_stream(writer, nullptr);
        check(avcodec_parameters_from_context(stream->codecpar, &codec_.context()), "describing the stream");
        if (stream->codecpar->codec_id == AV_CODEC_ID_HEVC && std::string_view(format_.name) == "mp4")
            stream->codecpar->codec_tag = MKTAG('h', 'v', 'c', '1');  // which all players accept
        stream->time_base = {1, codec_.context().time_base.den};
        stream->avg_frame_rate = codec_.context().framerate;
    }

    void write_to_memory() {
        make_writer(nullptr);
        constexpr int buffer_bytes = 64 * 1024;
        writer_->pb = avio_alloc_context(static_cast<unsigned char*>(av_malloc(buffer_bytes)), buffer_bytes,
                                         1, &bytes_, nullptr, collect, nullptr);
        writer_->flags |= AVFMT_FLAG_CUSTOM_IO;
        const int scale = codec_.context().time_base.den;
        const bool fragments = std::string_view(format_.name) == "mp4";
        if (fragments) {
            rest_.set("movflags", "empty_moov+default_base_moof+frag_custom+frag_discont");
            rest_.set("use_editlist", "0");
            rest_.set("video_track_timescale", std::to_string(scale));
        }
        if (with_.format == container::matroska) {
            rest_.set("live", "1");
            rest_.set("write_crc32", "0");
        }
        check(avformat_write_header(writer_.get(), rest_.argument()), "writing the heading");
        ffmpeg::refuse_rest(rest_, codec_.name());
        avio_flush(writer_->pb);
        heading_ = std::exchange(bytes_, {});
        if (fragments && writer_->streams[0]->time_base.den != scale)
            throw output_error("the MP4 writer of ffmpeg's libraries uses another time scale than expected");
    }

    // FFmpeg's libraries call this several times per second while they wait.
    [[nodiscard]] bool is_overdue() const {
        const u64 now = now_ns();
        if (with_.on_wait && now - began_ > receiver_wait::slice_ns) with_.on_wait();
        return now > until_;
    }

    void begin_wait() noexcept {
        began_ = now_ns();
        until_ = began_ + static_cast<u64>(with_.timeout_s * static_cast<f64>(ns_per_s));
    }

    // Retries until the time has passed, because the receiver may be starting.
    void connect() {
        constexpr u32 pause_us = 200'000;
        begin_wait();
        for (const u64 until = until_;;) {
            try {
                connect_once();
                return;
            } catch (const output_error& e) {
                if (now_ns() + pause_us * ns_per_us > until)
                    throw output_error(
                        fmt::format("{}; tried for {} s (key timeout_s): check that the receiver runs",
                                    e.what(), with_.timeout_s));
            }
            ::usleep(pause_us);
            until_ = until;
        }
    }

    void connect_once() {
        make_writer(with_.url.c_str());
        media::options all = rest_;
        if (with_.format == container::rtsp) all.set_default("rtsp_transport", "tcp");
        if (with_.url.starts_with("udp:")) all.set_default("pkt_size", "1316");
        const std::string what = fmt::format("connecting to {}", with_.url);
        if ((format_.flags & AVFMT_NOFILE) == 0)
            check(avio_open2(&writer_->pb, with_.url.c_str(), AVIO_FLAG_WRITE, &writer_->interrupt_callback,
                             all.argument()),
                  what);
        check(avformat_write_header(writer_.get(), all.argument()), what);
        ffmpeg::refuse_rest(all, codec_.name());
    }

    encode_settings with_;
    const AVOutputFormat& format_;
    media::options rest_;
    ffmpeg::codec codec_;
    std::vector<u8> bytes_, heading_;
    u64 began_ = 0;        ///< of the wait, CLOCK_MONOTONIC
    u64 until_ = ~u64{0};  ///< CLOCK_MONOTONIC; the network output is interrupted after that
    bool closed_ = false;
    std::unique_ptr<AVFormatContext, writer_freer> writer_;
};

/// Calls `body` and reports its exception in words, because exceptions do not leave the module.
template <typename Body>
auto reported(std::string& why, bool& refused, Body body) -> decltype(body()) {
    media::collect_messages();
    try {
        return body();
    } catch (const config_error& e) {
        refused = true;
        why = e.what();
    } catch (const std::exception& e) {
        why = e.what();
    }
    return {};
}

encoder* make(const encode_settings& with, std::string& why, bool& refused) {
    return reported(why, refused, [&]() -> encoder* { return new ffmpeg_encoder(with); });
}

bool check_settings(const encode_settings& with, std::string& why, bool& refused) {
    return reported(why, refused, [&] {
        constexpr u32 small = 256;
        constexpr u64 pictures = 4;
        const AVOutputFormat& format = *ffmpeg::output_format(with);
        encode_settings tried = with;
        if (tried.width > small) tried.width = small + tried.width % 2;
        if (tried.height > small) tried.height = small + tried.height % 2;
        media::options rest;
        ffmpeg::codec codec(tried, format, rest);
        if (!with.network) ffmpeg::refuse_rest(rest, codec.name());
        const std::vector<std::byte> picture(std::size_t{8} * tried.width * tried.height);
        for (u64 n = 0; n < pictures; ++n)
            (void)codec.encode(n, n * ns_per_s / 30, {{picture.data(), picture.data()}}, n == 0);
        return true;
    });
}

constexpr encoder_functions functions{make, check_settings};

}  // namespace
}  // namespace carousel::stages

extern "C" __attribute__((visibility("default"))) const carousel::stages::encoder_functions*
carousel_encoder_3() {
    return &carousel::stages::functions;
}
