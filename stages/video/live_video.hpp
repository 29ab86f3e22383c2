#pragma once
// The newest frame of a live input. A thread reads and decodes all the time, because a sender does not wait;
// a frame that is replaced by a newer one before it is taken is dropped and counted.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/types.hpp"
#include "stages/video/call_watch.hpp"
#include "stages/video/media_input.hpp"

namespace carousel::stages::video {

struct live_frame {
    media::owner<AVFrame> picture;
    i64 pts_ns = 0;
    u64 captured_ns = 0;  ///< the time at which its packet arrived, CLOCK_MONOTONIC
    bool key = false;
    u64 dropped = 0;  ///< number of frames that this process has dropped before it
};

class live_video {
public:
    /// `wake` is called, in the thread, when there is a frame or the input has ended. With `reconnects`, an
    /// input that ends is opened again; one that fails always is, except after an error of the pipeline file.
    live_video(const address& where, int stream, const media::options& options, bool reconnects,
               std::function<void()> wake);
    ~live_video();
    live_video(const live_video&) = delete;
    live_video& operator=(const live_video&) = delete;

    [[nodiscard]] bool has_frame();
    /// True if there is no frame, and there will be none. Throws config_error if the input could not be
    /// opened, or cannot be decoded.
    [[nodiscard]] bool has_ended();
    [[nodiscard]] std::optional<live_frame> take();

private:
    void run();
    void end(const std::string& failure);
    [[nodiscard]] bool open();
    /// Reads until the input ends; returns the reason, "" for a regular end.
    [[nodiscard]] std::string play();
    void receive(AVCodecContext& decoder);
    void offer(media::owner<AVFrame> picture);
    void report_drops(bool now);
    void pause(u64 ns);

    const address where_;
    const int stream_;
    const media::options options_;
    const bool reconnects_;
    const std::function<void()> wake_;
    call_watch watch_;
    std::mutex mutex_;
    std::unique_ptr<media_input> input_;  ///< replaced under the mutex
    std::optional<live_frame> newest_;
    bool ended_ = false;
    bool was_open_ = false;  ///< used only by the thread
    std::string failure_;
    u64 dropped_ = 0, reported_ = 0, reported_ns_ = 0;
    std::map<i64, std::pair<u64, bool>>
        arrived_;  ///< by time: when the packet arrived, whether it is a key frame
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace carousel::stages::video
