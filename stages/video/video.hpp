#pragma once
// The source that reads videos with FFmpeg's libraries: files, streams, devices (carousel-video).
//   url           a file, relative to the pipeline file's folder, or e.g. rtsp://host/stream, /dev/video0,
//                 lavfi:testsrc2=rate=25, a FIFO
//   stream        number of the stream in the input [the best video]
//   loop          a file begins again at its end; a live input that has ended is opened again [false]
//   rate          relative to the recorded pace: 1 as recorded, 2 twice as fast, 0 as fast as possible or at
//   the
//                 pipeline's fps [0]
//   live          delivers the newest frame, and counts those that are dropped [true for streams of the
//   network,
//                 devices and pipes, which cannot be read again; otherwise false]
//   pixel_format  rgba, rgba16, gray8 or nv12 (frame/image_format.hpp) [rgba]
//   size          "1280x720": pictures are scaled to it [that of the video; of a live input the pipeline's]
//   on_change     if the size of the pictures changes: "scale", or "end" of the stream [scale]
//   options       options of FFmpeg's input and decoder, by their names, e.g. { rtsp_transport = "tcp" }
//   [none]
// Metadata of a frame: "pts_ns" (presentation time), "key_frame", "damaged" (the decoder has concealed
// damage), "missing" (of a tombstone: the reason), "dropped" (live: number of frames dropped so far).
//
// What a crash leaves: of a file, frame n is the same picture in every process (video_reader.hpp). A live
// input is opened again, and what was sent meanwhile is lost.

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <carousel/stage.hpp>
#include "stages/sdk/recorded_pace.hpp"
#include "stages/video/call_watch.hpp"
#include "stages/video/live_video.hpp"
#include "stages/video/video_reader.hpp"

namespace carousel::stages {

class video_source : public stage {
public:
    ~video_source() override;
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    [[nodiscard]] bool ready(u64 ring_sequence, u64 done_below) override;
    void process(frame& f) override;

private:
    void read_size(const configuration& with);
    void open_reader();
    void catch_up(u64 ring_sequence);
    [[nodiscard]] u64 place_of(u64 frame_number) const;
    void process_file(frame& f);
    void process_live(frame& f);
    void show(frame& f, media::owner<AVFrame> picture);
    [[nodiscard]] bool has_changed(const AVFrame& picture);

    std::string name_;
    video::address where_;
    int stream_ = -1;
    bool loop_ = false, live_ = false, ends_on_change_ = false;
    std::map<std::string, std::string> options_;
    media::picture_layout to_;
    u32 source_width_ = 0, source_height_ = 0;  ///< of the first picture; 0: not known yet
    ring::pixel_format pixels_ = ring::pixel_format::rgba8;
    ring::frame_format format_;
    recorded_pace pace_;
    environment* env_ = nullptr;
    std::unique_ptr<video::call_watch> watch_;
    std::unique_ptr<video::video_reader> reader_;
    std::unique_ptr<video::live_video> camera_;
    std::shared_ptr<media::converter> converter_ = std::make_shared<media::converter>();
    std::vector<std::unique_ptr<device::mapping>> lanes_;  ///< on a GPU: one converted picture per lane
    std::future<void> catching_up_;  ///< while it is valid, only its thread uses reader_ and reached_
    std::optional<u64> reached_;     ///< the frame that catch_up() has reached last
    std::atomic<bool> stop_{false};
};

}  // namespace carousel::stages
