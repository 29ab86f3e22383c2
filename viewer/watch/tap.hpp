#pragma once
// The newest picture of a run for display: of one ring, or of two side by side.
//
// The tap's thread sleeps on a doorbell of the ring. After the window has shown the last frame, the thread
// takes the newest frame as soon as it appears, because a frame may stay in the ring for only a fraction of a
// millisecond. The thread also computes the colours. The public functions belong to the window's thread. The
// constructor throws error (no answer, no such picture, no such device here); poll() throws device_error if
// the GPU failed.
//
// Two pictures show the same frame if possible. A frame is seldom in two rings at once: it is taken from the
// ring that it reaches first, then the tap waits until the frame arrives in the other ring or can no longer
// arrive. If no such pair is found within half a second, the newest frame of each ring is shown and note()
// reports this; for a ring without a new frame, the last frame remains shown.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "viewer/watch/ring_tap.hpp"

namespace carousel::viewer {

using carousel::session::discarded;

class tap {
public:
    /// `c` is a writable mapping of the run that outlives the tap. `make`: see ring_tap.hpp; two pictures
    /// always go through host memory.
    tap(shm::control_block& c, const std::string& socket_path, const picture_choice& what, interop_maker make,
        picture_way way = picture_way::best, const picture_styles& styles = {});
    ~tap();
    tap(const tap&) = delete;
    tap& operator=(const tap&) = delete;

    /// Returns true if there is a frame newer than the last one, and requests the next one. Throws
    /// device_error.
    [[nodiscard]] bool poll();
    /// Drops a frame that was taken and not shown, so that the next frame is newer than this call.
    void refresh();
    /// Sets how values become colours from now on. Returns true if the shown frame has been repainted.
    [[nodiscard]] bool set_styles(const picture_styles& styles);
    /// For interop only, after poll(): moves the frame into the texture.
    void show(unsigned texture) { first_->show(front_.frame[0], texture); }

    [[nodiscard]] u32 width() const noexcept { return width_; }
    [[nodiscard]] u32 height() const noexcept { return height_; }
    [[nodiscard]] u64 ring_sequence() const noexcept { return front_.frame[0].ring_sequence; }
    [[nodiscard]] discarded losses();
    [[nodiscard]] const std::string& stage() const noexcept { return first_->stage(); }
    /// The last complete frame, RGBA8, top row first; null on the interop path.
    [[nodiscard]] const std::byte* pixels() const noexcept;
    [[nodiscard]] bool on_gpu() const noexcept { return first_->on_gpu(); }
    /// Describes the path of a frame to the screen, and the reason why it is not a more direct one.
    [[nodiscard]] const std::string& path() const noexcept { return first_->path(); }
    /// The time that taking the shown frame out of the ring took, lease to release.
    [[nodiscard]] f64 copy_ms() const noexcept { return front_.frame[0].took_ms + front_.frame[1].took_ms; }
    /// The one or two pictures that are shown.
    [[nodiscard]] const std::vector<shown_picture>& shown() const noexcept { return front_.shown; }
    /// Returns the reason why two pictures do not show the same frame: "frame 14 next to frame 12: ..."; "":
    /// they do.
    [[nodiscard]] const std::string& note() const noexcept { return front_.note; }
    /// The content of a pixel of the whole image; nullopt: the pixel is outside every picture, there is no
    /// picture yet, or the picture is on the GPU.
    [[nodiscard]] std::optional<pointed_pixel> pixel_at(u32 x, u32 y) const;

private:
    /// The content of the screen at one time.
    struct shot {
        taken_frame frame[2];
        std::vector<std::byte> rgba, part;  ///< the whole image; scratch space for one of two pictures
        std::vector<shown_picture> shown;
        picture_styles styles;  ///< used for the colours
        std::string note;
        bool there = false;
    };
    void lay_out();
    void paint(shot& s, const picture_styles& styles) const;
    void paint_one(shot& s, std::size_t which, std::byte* to) const;
    [[nodiscard]] ring_tap& of(std::size_t which) const noexcept { return which == 0 ? *first_ : *compared_; }
    void loop();
    [[nodiscard]] bool take_one();
    [[nodiscard]] bool take_frames();
    [[nodiscard]] bool take_pair();
    [[nodiscard]] bool take_shown(std::size_t which);
    [[nodiscard]] bool is_stopping();

    std::unique_ptr<ring_tap> first_, compared_;
    std::vector<shown_picture> places_;  ///< positions of the pictures
    u32 width_ = 0, height_ = 0;
    shot front_, ready_, back_;  ///< shown; taken; being taken
    // Used only by the tap's thread.
    bool compared_leads_ = false;  ///< frames arrive in the compared ring first
    u64 unpaired_since_ns_ = 0;    ///< 0: the last two frames were a pair
    // Members shared by both threads, protected by the mutex.
    std::mutex mutex_;
    std::condition_variable wake_;
    bool wanted_ = true, fresh_ = false, stop_ = false;
    picture_styles styles_;
    discarded losses_;
    std::string failure_;
    std::thread thread_;
};

}  // namespace carousel::viewer
