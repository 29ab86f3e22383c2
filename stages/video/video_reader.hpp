#pragma once
// Reads a file's frames by their numbers. The same number is always the same picture, in each process that
// reads the file: by the index (frame_index.hpp), which the first process to reach a frame writes.
//
// A process that begins at frame n decodes from a key frame before it. Each picture on the way is compared
// with its entry in the index; if one differs, the process begins at an earlier key frame, and in the end at
// the beginning of the file.
//
// A packet whose decoding ends the process: the frame that was to be output is given up by the runner after
// max_attempts deaths. The next process, which is asked for the frame after it, then skips that packet and
// all packets up to the next key frame; their frames are missing.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/types.hpp"
#include "stages/video/decoder_note.hpp"
#include "stages/video/frame_decoder.hpp"
#include "stages/video/frame_index.hpp"
#include "stages/video/media_input.hpp"

namespace carousel::stages::video {

struct reader_setup {
    address where;
    int stream = -1;
    media::options options;
    /// "": the video has no index, because it can only be read from its beginning (a graph of filters).
    std::string index_path;
    std::string kept_index_path;  ///< folder of complete indexes of earlier runs; "": none is kept
    /// Begins the names of the files for successors: the note (decoder_note) and the content of the video.
    std::string note_stem;
    u32 epoch = 0;
};

class video_reader {
public:
    /// Throws config_error if the file is not the one that the run's first process has read, as the functions
    /// below do when they open it again.
    explicit video_reader(const reader_setup& with);

    /// True if the next frame is `frame`: reach() then returns at once.
    [[nodiscard]] bool is_at(u64 frame) const noexcept { return placed_ && at_ == frame; }
    /// Advances towards frame `frame` of the video for at most `patience_ns`. Returns true as soon as the
    /// next frame is `frame`, or if the video has ended before it. `number`: the frame's number in the run,
    /// which is higher in a loop.
    [[nodiscard]] bool reach(u64 frame, u64 number, u64 patience_ns);
    /// Returns the frame that reach() was called for, or null if the video ends before it. Decodes it, and so
    /// may not return if its packet is damaged.
    [[nodiscard]] const decoded_frame* read(u64 frame, u64 number);
    /// The picture of the frame that read() has returned; may be called once for it.
    [[nodiscard]] media::owner<AVFrame> take_picture() noexcept { return std::move(current_.picture); }
    /// The time from the first frame to the end of the last one, when the end was reached; otherwise 0.
    [[nodiscard]] f64 duration_s() const noexcept;
    /// The number of frames; empty until the end was reached.
    [[nodiscard]] std::optional<u64> total() const noexcept;
    [[nodiscard]] const media_input& input() const noexcept { return *input_; }

private:
    void open_at_beginning();
    void require_content(u64 found) const;
    [[noreturn]] void refuse_change() const;
    [[nodiscard]] bool start_at(const frame_index::start& from);
    void begin_for(u64 frame);
    /// Decodes until there is a next frame. Returns false at the end of the video.
    [[nodiscard]] bool advance(u64 wanted, bool catching_up);
    void feed(u64 wanted, bool catching_up);
    [[nodiscard]] int read_packet(u64 wanted, bool catching_up);
    void skip_to_key(const std::string& reason);
    void report_unread();
    void decode(u64 wanted, bool catching_up);
    /// Gives the decoder's frame its number. Returns false if it is not the one that the index contains.
    [[nodiscard]] bool number(decoded_frame& f);
    void restart_earlier(u64 wanted);
    void end_video();
    void settle_suspicion();

    reader_setup with_;
    std::optional<u64> content_;  ///< of the file that the run's first process has read
    std::unique_ptr<media_input> input_;
    std::unique_ptr<frame_decoder> decoder_;
    std::unique_ptr<frame_index> index_;
    std::unique_ptr<decoder_note> note_;
    media::owner<AVPacket> packet_;
    packet_id last_packet_;
    i64 last_packet_pts_ = AV_NOPTS_VALUE;
    std::string read_failure_;  ///< what the input reported while it searched for packet_

    std::optional<decoded_frame> next_;  ///< the next frame, if it is decoded
    decoded_frame current_;              ///< what read() has returned
    u64 at_ = 0;                         ///< the number of the next frame
    bool placed_ = false;                ///< at_ is known
    bool by_time_ = false;      ///< the decoder started at a key frame: frames are found in the index by time
    u64 started_at_ = 0;        ///< that key frame
    u64 exact_from_ = 0;        ///< frames below it need not be those of the index
    std::size_t attempts_ = 0;  ///< how many of the index's starts have led to other pictures
    bool waits_for_key_ = true;         ///< packets before the first key frame are not part of the video
    std::optional<i64> key_dts_;        ///< after a seek: the key frame to begin with
    std::optional<i64> leading_below_;  ///< after skipped packets: packets below this time refer to them
    bool held_ = false;                 ///< packet_ is to be decoded next
    bool drained_ = false, ends_early_ = false;
    u64 number_ = 0;       ///< the number in the run of the frame that is wanted
    u64 heading_for_ = 0;  ///< the frame that reach() was called for
    bool warned_ = false;
    i64 first_pts_ = 0, last_pts_ = 0;
    u64 end_ = 0;  ///< number of frames, once the end was reached
};

}  // namespace carousel::stages::video
