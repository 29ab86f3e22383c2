#pragma once
// The sink that encodes pictures: MP4, Matroska, an HLS folder, or a network stream. Input: a picture of any
// format of frame/image_format.hpp. Output: none. Settings:
//   url, out      where to: a file (.mp4, .mkv), a playlist (.m3u8: HLS), pipe:1, or rtsp://, udp://, tcp://,
//                 srt://, rtmp://. A relative path refers to the run's output directory.
//   format        container, if the URL does not determine it: mp4, mkv, hls, mpegts, rtsp or flv
//   codec         h264, hevc, av1, vp9 or ffv1 ["h264"]
//   encoder       FFmpeg's name of the encoder, for example "h264_nvenc" [the first one found for the codec]
//   bitrate       bits per second; without it the quality is constant
//   quality       crf or cq of the encoder, smaller is better [the encoder's default here]
//   preset        the encoder's preset or speed [a fast one]
//   gop           at most that many frames from one key frame to the next [60]
//   pixel_format  FFmpeg's name, for example "yuv444p" [the codec's usual one]
//   options       a table of further options of FFmpeg's encoder and container
//   fps           frame N is shown at N / fps; "frames": at the frame's own time [the pipeline's fps, or 30]
//   segment_s     shortest duration of an HLS segment in seconds [2]
//   keep          number of HLS segments that are kept; 0: all [0]
//   timeout_s     limit of each wait for a network output, a pipe, a FIFO [10]
//   hash          records a hash of the first plane of each picture for the report [false]
// What a crash leaves: a file or a folder has each frame exactly once (encoded_file.hpp, hls_folder.hpp). A
// network output, a pipe or a FIFO gets the frame during which a process was killed again (at least once).
// The first picture of a successor is a key frame.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <carousel/hash.hpp>
#include <carousel/stage.hpp>
#include "stages/encode/encoded_output.hpp"

namespace carousel::stages {

class encode : public stage {
public:
    ~encode() override;
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override;

private:
    std::string name_, run_directory_;
    encode_settings settings_;
    struct plane {
        std::string name;
        u64 bytes = 0, at = 0;  ///< size, and place in a lane
    };
    std::vector<plane> planes_;
    u64 picture_bytes_ = 0;
    std::unique_ptr<encoded_output> output_;
    frame* current_ = nullptr;              ///< the frame that is being written
    std::unique_ptr<plane_hasher> hasher_;  ///< null: no hashes
    bool hashes_ = false;
    /// One picture per lane, in memory that the CPU can read. A copy is needed, because the output is written
    /// after the last check of ownership, and by that time the slot may contain another frame.
    std::vector<std::unique_ptr<device::mapping>> lanes_;
};

}  // namespace carousel::stages
