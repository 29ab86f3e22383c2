#pragma once
// An opened input of FFmpeg: a file, a stream of the network, a device, a pipe, a filter graph, and one video
// stream of it.

#include <atomic>
#include <optional>
#include <string>

#include "core/errors.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"
#include "stages/media/ffmpeg.hpp"

namespace carousel::stages::video {

enum class address_kind : u8 {
    file,     ///< a file here or on a web server, which can be read again from any place
    lavfi,    ///< a graph of FFmpeg's filters: always the same pictures, but only from the beginning
    network,  ///< a stream that a server sends now
    device,
    pipe,
};

struct address {
    std::string written;  ///< as in the pipeline file, for messages
    std::string url;      ///< for FFmpeg
    std::string format;   ///< FFmpeg's name of the input format; "": it finds out by itself
    address_kind kind = address_kind::file;
    [[nodiscard]] bool is_live() const noexcept {
        return kind != address_kind::file && kind != address_kind::lavfi;
    }
    /// True for a file on a server (http, ftp).
    [[nodiscard]] bool is_on_server() const noexcept {
        return kind == address_kind::file && !url.starts_with("file:");
    }
};

/// Time without data after which a server of files counts as gone: below the limit of call_watch.
constexpr u32 server_patience_s = 8;

/// An input that cannot be opened or has no video now, but may have one later.
class input_error : public config_error {
public:
    using config_error::config_error;
};

/// `written`: the value of the key url. `file`: the same as an absolute path.
[[nodiscard]] address address_of(const std::string& written, const std::string& file);

class media_input {
public:
    /// Opens the input and finds its stream `stream` (-1: the best video stream). Throws config_error, in one
    /// sentence, for an input that does not exist, is not a video, or takes none of the options; input_error
    /// if a later attempt may succeed. `patience_s`: time without any data after which reading fails; 0:
    /// unlimited.
    media_input(const address& where, int stream, const media::options& wanted, u32 patience_s = 0);
    ~media_input();
    media_input(const media_input&) = delete;
    media_input& operator=(const media_input&) = delete;

    /// Reads the next packet of the stream. Returns 0 or one of FFmpeg's errors, AVERROR_EOF at the end.
    [[nodiscard]] int read(AVPacket& to);
    /// Goes to a packet that is not later than the one with decoding time `dts`. Returns false if that
    /// failed; the position is then unknown.
    [[nodiscard]] bool seek(i64 dts);
    /// Ends a read in another thread, and all later ones.
    void stop() noexcept { stop_.store(true, std::memory_order_relaxed); }

    [[nodiscard]] const AVStream& stream() const noexcept { return *format_->streams[stream_]; }
    [[nodiscard]] const AVCodecParameters& parameters() const noexcept { return *stream().codecpar; }
    /// The options that the input did not take, for the decoder.
    [[nodiscard]] const media::options& decoder_options() const noexcept { return rest_; }
    /// The time at which the recording began, in ns since 1970, from the file; 0: unknown.
    [[nodiscard]] u64 creation_ns() const;
    /// Bytes of the input; 0: unknown.
    [[nodiscard]] u64 bytes() const;

private:
    static int interrupted(void* self);
    static int read_pipe(void* self, u8* to, int bytes);
    void open_pipe(const address& where);
    void close() noexcept;

    shm::unique_fd pipe_;
    AVIOContext* pipe_reader_ = nullptr;
    AVFormatContext* format_ = nullptr;
    unsigned stream_ = 0;
    media::options rest_;
    u64 patience_ns_ = 0;
    std::atomic<u64> deadline_ns_{0};  ///< 0: none
    std::atomic<bool> stop_{false};
};

/// Opens a decoder for a stream, with a fixed number of threads that share one picture: so the decoder
/// outputs the same pictures after the same packets, also if packets are damaged. Throws config_error.
[[nodiscard]] media::owner<AVCodecContext> open_decoder(const media_input& of, const address& where);

/// Decodes the first picture; null if there is none in the first packets. The description of a stream may be
/// that of a later picture.
[[nodiscard]] media::owner<AVFrame> first_picture(media_input& of, AVCodecContext& decoder);

}  // namespace carousel::stages::video
