#pragma once
// Turns packets into the frames of a video, in the order of their presentation, and adds those that are
// missing because their packets are damaged or are not decoded.

#include <deque>
#include <map>
#include <string>

#include "core/types.hpp"
#include "stages/media/ffmpeg.hpp"
#include "stages/video/decoder_note.hpp"
#include "stages/video/frame_index.hpp"

namespace carousel::stages::video {

/// The identity of a packet in its file.
[[nodiscard]] packet_id id_of(const AVPacket& p) noexcept;
/// The hash of a picture's pixels.
[[nodiscard]] u64 hash_of(const AVFrame& picture);

/// The next frame of a video.
struct decoded_frame {
    index_entry entry;
    media::owner<AVFrame> picture;  ///< null if the frame is missing
    std::string reason;             ///< why it is missing
};

// Which frames are missing: a packet with a time for which the decoder outputs no picture, although it has
// output a later one. For codecs whose packets may contain pictures that are not shown (VP8, VP9, AV1, and
// fields of interlaced video), only if the decoder has reported an error for the packet, or the packet was
// not decoded. Packets before the first key frame of a video are not part of it.

class frame_decoder {
public:
    explicit frame_decoder(media::owner<AVCodecContext> codec);

    /// Prepares for a packet after a seek. Frames that the decoder holds are discarded.
    void restart();
    /// Prepares for a packet after skipped ones, after drain().
    void renew();
    /// Frames with a lower time than `pts` are ignored: after a seek their references are not decoded.
    void ignore_below(i64 pts) noexcept { lowest_ = pts; }
    /// At the beginning of a video, pictures before the first key frame may be complete, but none is missing.
    void none_missing_below(i64 pts) noexcept { lowest_missing_ = pts; }
    /// Decodes a packet. Throws std::bad_alloc.
    void decode(const AVPacket& p);
    /// Decodes what the decoder has kept back; renew() is to be called before the next packet.
    void drain();
    /// Adds a packet that is not decoded: its frame is missing.
    void skip(const AVPacket& p, const std::string& reason);
    /// After drain() at the end of the video: reports packets that have no picture.
    void finish();

    [[nodiscard]] bool has_frame() const noexcept { return !ready_.empty(); }
    [[nodiscard]] decoded_frame take_frame();
    /// True if a picture had no time, or not a higher one than the picture before it.
    [[nodiscard]] bool irregular() const noexcept { return irregular_; }

private:
    struct sent {
        i64 dts = 0;
        bool key = false, shown = true;
        std::string failure;  ///< "": the decoder has reported no error
    };
    void receive(std::string* failure);
    void output(media::owner<AVFrame> picture);
    void report_missing(i64 below);

    media::owner<AVCodecContext> codec_;
    bool one_to_one_ = false;      ///< each packet is a picture that is shown
    std::map<i64, sent> pending_;  ///< by their times: packets whose pictures are not output yet
    std::deque<decoded_frame> ready_;
    i64 lowest_ = INT64_MIN, lowest_missing_ = INT64_MIN, last_ = INT64_MIN;
    bool irregular_ = false;
};

}  // namespace carousel::stages::video
