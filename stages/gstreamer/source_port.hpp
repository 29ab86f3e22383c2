#pragma once
// The frames of a run for carouselsrc: through a port that reads every frame, or the newest ones.
//
// Every frame. A frame is committed after it was handed over to the next element and is no longer in use
// there: at the request for the next frame, or `longest_lease_ns` after the hand-over, when it is copied for
// elements that still hold it. So a pipeline that is paused or blocked keeps no lease, and the run does not
// fence its port. A frame that was not handed over is not committed: the port's next program gets it.
//
// Threads: next() is called by the streaming thread, note_handed_over() by the thread that pushes (the same
// one), a thread of this class ends leases. One mutex protects the port.

#include <carousel/port.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/types.hpp"
#include "stages/gstreamer/frame_memory.hpp"
#include "stages/gstreamer/video_layout.hpp"

namespace carousel::gstreamer {

struct source_options {
    std::string pipeline, ring;
    bool every = false;
    f64 wait_s = 5;
};

/// A frame as it is handed to GStreamer.
struct picture {
    std::shared_ptr<frame_memory> memory;
    video_layout layout{};
    u64 frame_number = 0;
    u64 capture_ns = 0, born_ns = 0;  ///< CLOCK_MONOTONIC; capture_ns is 0 if the source has not set it
    f64 time_s = 0;                   ///< frame_number / fps
    std::optional<u64> pts_ns;        ///< the metadata "pts_ns", which carouselsink and carousel-video set
    bool follows_gap = false;         ///< frames before this one were left out
};

class source_port {
public:
    /// Opens the run and the port. Throws carousel::error, whose text is one sentence.
    explicit source_port(const source_options& options);
    ~source_port();
    source_port(const source_port&) = delete;
    source_port& operator=(const source_port&) = delete;

    enum class result : u8 { picture, nothing, ended };
    /// Takes the next frame. `nothing`: none arrived within `timeout_s` seconds. Throws carousel::error.
    [[nodiscard]] result next(picture& out, f64 timeout_s);
    /// Called when the last picture is passed to the next element.
    void note_handed_over() noexcept { is_handed_over_.store(true, std::memory_order_release); }

    [[nodiscard]] const video_layout& layout() const noexcept { return layout_; }
    [[nodiscard]] f64 fps() const noexcept { return fps_; }
    /// Number of frames that were left out (only of the newest frames).
    [[nodiscard]] u64 dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
    /// Returns, once, a sentence about something that the user should know; "": nothing.
    [[nodiscard]] std::string take_warning();

private:
    [[nodiscard]] result next_of_all(picture& out, f64 timeout_s);
    [[nodiscard]] result next_of_newest(picture& out, f64 timeout_s);
    [[nodiscard]] bool end_lease(u64 wait_ns);
    void commit(reader_frame& frame);
    void end_old_leases();

    std::mutex mutex_;
    std::optional<open_run> run_;
    std::optional<reader_port> reader_;
    std::optional<latest_port> latest_;
    video_layout layout_{};
    f64 fps_ = 0;
    reader_frame* leased_ = nullptr;  ///< the frame that is not committed yet
    picture last_;                    ///< of that frame
    u64 leased_since_ns_ = 0;
    u64 next_ = 0;  ///< frames below this ring sequence have been handed over
    std::atomic<bool> is_handed_over_{false};
    std::atomic<u64> dropped_{0};
    std::string warning_;
    std::condition_variable stop_;
    bool stopping_ = false;
    std::thread lease_thread_;
};

}  // namespace carousel::gstreamer
