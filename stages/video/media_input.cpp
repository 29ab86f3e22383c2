#include "stages/video/media_input.hpp"

extern "C" {
#include <libavdevice/avdevice.h>
#include <libavutil/parseutils.h>
}
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"

namespace carousel::stages::video {
namespace {

constexpr unsigned most_decoder_threads = 4;
constexpr int most_packets_before_picture = 200;
constexpr int pipe_buffer_bytes = 64 * 1024;
constexpr u64 pipe_poll_ns = 100 * ns_per_ms;

/// Protocols whose sender does not wait for the reader.
constexpr std::array live_protocols{"rtsp", "rtsps", "rtmp", "rtmps", "rtp",
                                    "udp",  "srt",   "tcp",  "sdp",   "mms"};

void register_devices() {
    static std::once_flag once;
    std::call_once(once, avdevice_register_all);
}

/// True for the errors of an address or of its options, which a later attempt has again.
bool is_lasting(int result) {
    constexpr std::array lasting{AVERROR_PROTOCOL_NOT_FOUND,
                                 AVERROR_DEMUXER_NOT_FOUND,
                                 AVERROR_OPTION_NOT_FOUND,
                                 AVERROR_HTTP_BAD_REQUEST,
                                 AVERROR_HTTP_UNAUTHORIZED,
                                 AVERROR_HTTP_FORBIDDEN,
                                 AVERROR(EINVAL),
                                 AVERROR(ENOSYS)};
    return std::find(lasting.begin(), lasting.end(), result) != lasting.end();
}

bool is_fifo(const std::string& path) {
    struct stat s {};
    return ::stat(path.c_str(), &s) == 0 && S_ISFIFO(s.st_mode);
}

}  // namespace

address address_of(const std::string& written, const std::string& file) {
    if (written.starts_with("lavfi:")) return {written, written.substr(6), "lavfi", address_kind::lavfi};
    if (written.starts_with("pipe:")) return {written, written, "", address_kind::pipe};
    if (written.starts_with("/dev/video")) return {written, written, "video4linux2", address_kind::device};
    if (const std::size_t at = written.find("://"); at != std::string::npos) {
        const std::string protocol = written.substr(0, at);
        const bool live =
            std::find(live_protocols.begin(), live_protocols.end(), protocol) != live_protocols.end();
        return {written, written, "", live ? address_kind::network : address_kind::file};
    }
    // "file:" keeps FFmpeg from reading a protocol out of a name with a colon.
    return {written, "file:" + file, "", is_fifo(file) ? address_kind::pipe : address_kind::file};
}

int media_input::interrupted(void* self) {
    const auto& in = *static_cast<const media_input*>(self);
    const u64 deadline = in.deadline_ns_.load(std::memory_order_relaxed);
    return in.stop_.load(std::memory_order_relaxed) || (deadline != 0 && now_ns() > deadline) ? 1 : 0;
}

// FFmpeg's own reading of a pipe cannot be ended while no data arrive. A FIFO that no process has opened for
// writing yet is not at its end: poll reports neither data nor a hang-up.
int media_input::read_pipe(void* self, u8* to, int bytes) {
    auto& in = *static_cast<media_input*>(self);
    while (interrupted(self) == 0) {
        if (events_of(in.pipe_.get(), POLLIN, now_ns() + pipe_poll_ns) == 0) continue;
        const ssize_t got = ::read(in.pipe_.get(), to, static_cast<std::size_t>(bytes));
        if (got > 0) return static_cast<int>(got);
        if (got == 0) return AVERROR_EOF;
        if (errno != EAGAIN && errno != EINTR) return AVERROR(errno);
    }
    return AVERROR_EXIT;
}

void media_input::open_pipe(const address& where) {
    const int number = std::atoi(where.url.c_str() + std::string("pipe:").size());
    pipe_.reset(where.url.starts_with("pipe:") ? ::fcntl(number, F_DUPFD_CLOEXEC, 0)
                                               : ::open(where.url.c_str() + std::string("file:").size(),
                                                        O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!pipe_)
        throw config_error(fmt::format("url = \"{}\": cannot be opened: {}; check that the pipe exists",
                                       where.written, errno_text(errno)));
    pipe_reader_ = avio_alloc_context(static_cast<unsigned char*>(av_malloc(pipe_buffer_bytes)),
                                      pipe_buffer_bytes, 0, this, read_pipe, nullptr, nullptr);
    if (pipe_reader_ == nullptr) throw std::bad_alloc();
    format_->pb = pipe_reader_;
}

media_input::media_input(const address& where, int stream, const media::options& wanted, u32 patience_s)
    : rest_(wanted), patience_ns_(patience_s * ns_per_s) {
    register_devices();
    const auto refuse = [&](const std::string& why) {
        close();
        throw config_error(fmt::format("url = \"{}\": {}", where.written, why));
    };
    const auto fail = [&](const std::string& why, int result) {
        close();
        const std::string silent =
            fmt::format("no data for {} s; check the address, and that the sender runs", patience_s);
        throw input_error(
            fmt::format("url = \"{}\": {}", where.written, result == AVERROR_EXIT ? silent : why));
    };
    const AVInputFormat* const as =
        where.format.empty() ? nullptr : av_find_input_format(where.format.c_str());
    if (!where.format.empty() && as == nullptr)
        refuse(fmt::format("these FFmpeg libraries cannot read {}", where.format));
    format_ = avformat_alloc_context();
    if (format_ == nullptr) throw std::bad_alloc();
    format_->interrupt_callback = {interrupted, this};
    if (where.kind == address_kind::pipe) open_pipe(where);
    // Otherwise FFmpeg waits for a device's next picture without a timeout.
    if (where.kind == address_kind::device) format_->flags |= AVFMT_FLAG_NONBLOCK;
    if (patience_ns_ != 0) deadline_ns_ = now_ns() + patience_ns_;
    if (const int result = avformat_open_input(&format_, where.url.c_str(), as, rest_.argument());
        result < 0) {
        const std::string why =
            fmt::format("cannot be opened: {}; check the name, and that this user may read it",
                        media::error_text(result));
        if (is_lasting(result)) refuse(why);
        fail(why, result);
    }
    if (const int result = avformat_find_stream_info(format_, nullptr); result < 0)
        fail(fmt::format("is not a video: {}", media::error_text(result)), result);
    const AVCodec* decoder = nullptr;
    const int found = av_find_best_stream(format_, AVMEDIA_TYPE_VIDEO, stream, -1, &decoder, 0);
    if (found == AVERROR_DECODER_NOT_FOUND) refuse("these FFmpeg libraries have no decoder for its video");
    if (found < 0)  // damage may hide it
        fail(stream < 0 ? "it has no video"
                        : fmt::format("stream {} of its {} is not a video", stream, format_->nb_streams),
             found);
    stream_ = static_cast<unsigned>(found);
    for (unsigned k = 0; k < format_->nb_streams; ++k)
        if (k != stream_) format_->streams[k]->discard = AVDISCARD_ALL;
    deadline_ns_ = 0;
}

media_input::~media_input() { close(); }

void media_input::close() noexcept {
    avformat_close_input(&format_);
    if (pipe_reader_ != nullptr) av_freep(&pipe_reader_->buffer);
    avio_context_free(&pipe_reader_);
}

int media_input::read(AVPacket& to) {
    if (patience_ns_ != 0) deadline_ns_ = now_ns() + patience_ns_;
    for (;;) {
        av_packet_unref(&to);
        const int result = av_read_frame(format_, &to);
        // a device, whose descriptor is not accessible for poll()
        if (result == AVERROR(EAGAIN) && (format_->flags & AVFMT_FLAG_NONBLOCK) != 0) {
            if (interrupted(this) != 0) return AVERROR_EXIT;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            continue;
        }
        if (result >= 0 && static_cast<unsigned>(to.stream_index) != stream_) continue;
        return std::min(result, 0);
    }
}

bool media_input::seek(i64 dts) {
    return av_seek_frame(format_, static_cast<int>(stream_), dts, AVSEEK_FLAG_BACKWARD) >= 0;
}

u64 media_input::creation_ns() const {
    const AVDictionaryEntry* const e = av_dict_get(format_->metadata, "creation_time", nullptr, 0);
    i64 us = 0;
    if (e == nullptr || av_parse_time(&us, e->value, 0) < 0 || us <= 0) return 0;
    return static_cast<u64>(us) * 1000;
}

u64 media_input::bytes() const {
    const i64 size = format_->pb != nullptr ? avio_size(format_->pb) : 0;
    return size > 0 ? static_cast<u64>(size) : 0;
}

media::owner<AVCodecContext> open_decoder(const media_input& of, const address& where) {
    const AVCodecParameters& about = of.parameters();
    const AVCodec* const codec = avcodec_find_decoder(about.codec_id);
    if (codec == nullptr)
        throw config_error(fmt::format("url = \"{}\": these FFmpeg libraries have no decoder for {}",
                                       where.written, avcodec_get_name(about.codec_id)));
    media::owner<AVCodecContext> decoder(avcodec_alloc_context3(codec));
    if (!decoder || avcodec_parameters_to_context(decoder.get(), &about) < 0) throw std::bad_alloc();
    decoder->pkt_timebase = of.stream().time_base;
    decoder->framerate = of.stream().avg_frame_rate;
    media::options with(of.decoder_options());
    with.set_default(
        "threads", std::to_string(std::clamp(std::thread::hardware_concurrency(), 1U, most_decoder_threads)));
    with.set_default("thread_type", "slice");
    if (const int result = avcodec_open2(decoder.get(), codec, with.argument()); result < 0)
        throw config_error(fmt::format("url = \"{}\": the decoder {} cannot be opened: {}", where.written,
                                       codec->name, media::error_text(result)));
    if (const std::string left = with.left(); !left.empty())
        throw config_error(
            fmt::format("options: neither FFmpeg's input {} nor its decoder {} has an option {}",
                        where.written, codec->name, left));
    return decoder;
}

media::owner<AVFrame> first_picture(media_input& of, AVCodecContext& decoder) {
    const media::owner<AVPacket> packet(av_packet_alloc());
    media::owner<AVFrame> picture(av_frame_alloc());
    if (!packet || !picture) throw std::bad_alloc();
    for (int k = 0; k < most_packets_before_picture; ++k) {
        const bool end = of.read(*packet) < 0;
        (void)avcodec_send_packet(&decoder, end ? nullptr : packet.get());
        if (avcodec_receive_frame(&decoder, picture.get()) >= 0) return picture;
        if (end) break;
    }
    return nullptr;
}

}  // namespace carousel::stages::video
