#pragma once
// The newest picture of a run, for eyes: of one ring, or of two side by side.
//
// A thread of its own sleeps on a doorbell of the ring and takes the newest frame as soon as there is one,
// whenever the window has shown the last: a frame may be there for a fraction of a millisecond only. It makes
// the colours, too. The functions below belong to the window's thread. Errors: the constructor throws error
// (no answer, no such picture, no device here); poll() throws device_error when the GPU failed.
//
// Two pictures are of one frame where that can be had. A frame is seldom in two rings at once: it is taken
// from the ring that it comes to first, and the other one is waited for, until that frame is there or is
// gone. When half a second has brought no such pair, the newest of each are shown, and note() says so; a ring
// that stands has the one that was shown last.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "viewer/watch/ring_tap.hpp"

namespace carousel::viewer {

using run::discarded;

class tap {
public:
    /// `c` is a writable mapping of the run that outlives the tap. `make`: ring_tap.hpp; two pictures always
    /// go through host memory.
    tap(shm::control_block& c, const std::string& socket_path, const picture_choice& what, interop_maker make,
        picture_way way = picture_way::best, const picture_styles& styles = {});
    ~tap();
    tap(const tap&) = delete;
    tap& operator=(const tap&) = delete;

    /// True when there is a frame newer than the last one; asks for the next.
    [[nodiscard]] bool poll();
    /// Forgets a frame that was taken and not shown: the next one is newer than this call.
    void refresh();
    /// How values become colours from now on. True: the frame that is shown looks otherwise now.
    [[nodiscard]] bool set_styles(const picture_styles& styles);
    /// Interop only, after poll(): moves the frame into the texture.
    void show(unsigned texture) { first_->show(front_.frame[0], texture); }

    [[nodiscard]] u32 width() const noexcept { return width_; }
    [[nodiscard]] u32 height() const noexcept { return height_; }
    [[nodiscard]] u64 ring_sequence() const noexcept { return front_.frame[0].ring_sequence; }
    [[nodiscard]] discarded losses();
    [[nodiscard]] const std::string& stage() const noexcept { return first_->stage(); }
    /// The last whole frame, RGBA8, top row first; null on the interop path.
    [[nodiscard]] const std::byte* pixels() const noexcept;
    [[nodiscard]] bool on_gpu() const noexcept { return first_->on_gpu(); }
    /// How a frame gets to the screen, and why not more directly.
    [[nodiscard]] const std::string& path() const noexcept { return first_->path(); }
    /// What taking the shown frame out of the ring cost, lease to release.
    [[nodiscard]] f64 copy_ms() const noexcept { return front_.frame[0].took_ms + front_.frame[1].took_ms; }
    /// One, or two: what is shown.
    [[nodiscard]] const std::vector<shown_picture>& shown() const noexcept { return front_.shown; }
    /// "frame 14 beside frame 12: ...": why two pictures are not of one frame; "": they are.
    [[nodiscard]] const std::string& note() const noexcept { return front_.note; }
    /// What lies at a pixel of the whole; nothing: no picture, or it is on the GPU.
    [[nodiscard]] std::optional<pointed_pixel> pixel_at(u32 x, u32 y) const;

private:
    /// What goes to the screen at once.
    struct shot {
        taken_frame frame[2];
        std::vector<std::byte> rgba, part;  ///< the whole; room for one of two
        std::vector<shown_picture> shown;
        picture_styles styles;  ///< that the colours were made with
        std::string note;
        bool there = false;
    };
    void lay_out();
    void paint(shot& s, const picture_styles& styles) const;
    void paint_one(shot& s, std::size_t which, std::byte* to) const;
    [[nodiscard]] ring_tap& of(std::size_t which) const noexcept { return which == 0 ? *first_ : *beside_; }
    void loop();
    [[nodiscard]] bool take_one();
    [[nodiscard]] bool take_frames();
    [[nodiscard]] bool take_pair();
    [[nodiscard]] bool take_shown(std::size_t which);
    [[nodiscard]] bool is_stopping();

    std::unique_ptr<ring_tap> first_, beside_;
    std::vector<shown_picture> places_;  ///< where the pictures lie
    u32 width_ = 0, height_ = 0;
    shot front_, ready_, back_;  ///< shown; taken; being taken
    // The tap's thread.
    bool beside_leads_ = false;  ///< frames come to its ring first
    u64 unpaired_since_ns_ = 0;  ///< 0: the last were a pair
    // Between the two threads, under the mutex.
    std::mutex mutex_;
    std::condition_variable wake_;
    bool wanted_ = true, fresh_ = false, stop_ = false;
    picture_styles styles_;
    discarded losses_;
    std::string failure_;
    std::thread thread_;
};

}  // namespace carousel::viewer
