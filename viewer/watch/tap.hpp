#pragma once
// Takes the newest picture of a run for display, from one ring, or from two rings to be shown side by side.
// The tap's thread sleeps on a doorbell of the ring. After the window has shown a frame, the thread takes the
// next new frame as soon as it appears, because a frame may stay in the ring for only a fraction of a
// millisecond. The thread also computes the colours. The public functions must be called in the window's
// thread. The constructor throws error if the supervisor does not answer, if there is no such picture, or if
// this process does not have the device. poll() throws device_error if the GPU failed. Two pictures show the
// same frame if possible. A frame is seldom in two rings at once. So the tap takes a frame from the ring in
// which it arrives first, and then waits until the same frame arrives in the other ring or can no longer
// arrive there. If no such pair is found within half a second, the newest frame of each ring is shown, and
// note() reports this. If a ring has no new frame, its last frame remains visible.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/backend.hpp"
#include "session/newest_frame.hpp"
#include "viewer/watch/picture_choice.hpp"

namespace carousel::viewer {

// The viewer's interface to CUDA-GL interop, which copies a frame from ring memory into a GL texture within
// the GPU. The current GL context must be on the same GPU; if it is not, the frame is copied through
// page-locked host memory instead. All functions must be called in the window's thread while its GL context
// is current.

class interop {
public:
    virtual ~interop() = default;
    /// Enqueues a copy of a picture into the pixel buffer. The picture is RGBA8, dense, and in memory of this
    /// GPU. Throws cuda_error.
    virtual void copy(device::queue& q, const std::byte* from) = 0;
    /// Moves the pixel buffer into the texture. The GPU does this after the copy; the caller does not wait.
    /// Throws cuda_error.
    virtual void show(unsigned texture, u32 width, u32 height) = 0;
};

/// A function that creates an interop, or returns null and sets `why_not`. The tap gets this function as an
/// argument, so that it does not depend on GL. If there is no GL, the argument is a null pointer.
using interop_maker = std::unique_ptr<interop> (*)(const device::device_id& device, u64 bytes,
                                                   std::string& why_not);

// Reads one plane of one ring, frame by frame. It uses session/newest_frame.hpp, which takes a frame
// completely or not at all, and never blocks the run. To be used from one thread at a time. The constructor
// throws error if the supervisor does not answer, if there is no such picture, or if this process does not
// have the device. take() throws cuda_error if the GPU failed.

/// Keeps this process out of the stages' MPS domain, because a fault of one client ends all clients of a
/// domain. To be called first in main(), because it changes the environment, which other threads may read
/// later.
void stay_outside_mps() noexcept;

/// The way in which a frame gets from the ring to the screen.
enum class picture_way : u8 {
    best,     ///< interop if it is available, otherwise a copy
    interop,  ///< CUDA-GL interop; without it there is no picture
    copy,     ///< for comparison: a copy through host memory, even if interop is available
};

/// A frame taken from the ring.
struct taken_frame {
    std::unique_ptr<device::mapping> bytes;  ///< the plane's bytes; they are in GPU memory if interop is used
    u64 ring_sequence = 0;
    f64 took_ms = 0;  ///< time from the lease of the frame to its release
    picture_part used;
    carried_facts carried;
};

class ring_tap {
public:
    /// `c` is a writable mapping of the run, which must outlive this object. `make` is called if the ring is
    /// in GPU memory; in this case a GL context must be current. `make` is null if there is no GL.
    ring_tap(shm::control_block& c, const std::string& socket_path, const plane_choice& what,
             interop_maker make, picture_way way);

    /// Allocates memory for one frame.
    [[nodiscard]] taken_frame make_room();
    /// Takes the newest frame, unless this frame or a newer one was taken before. If `only` is given, takes
    /// no frame other than number `only`. Returns false if there is no such frame at the moment, or if the
    /// frame was not read completely.
    [[nodiscard]] bool take(taken_frame& to, u64 only = ring::any_ring_sequence);
    /// Returns true if that frame is in the ring or has not arrived yet, and false if it has already left the
    /// ring.
    [[nodiscard]] bool may_arrive(u64 ring_sequence) const noexcept {
        return newest_->may_arrive(ring_sequence);
    }
    [[nodiscard]] shm::doorbell_word& bell() const noexcept { return newest_->bell(); }
    [[nodiscard]] const carousel::session::discarded& losses() const noexcept { return newest_->losses(); }

    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    [[nodiscard]] const plane_picture& picture() const noexcept { return picture_; }
    /// Describes how a frame gets to the screen, and why a more direct way is not used.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] bool on_gpu() const noexcept { return interop_ != nullptr; }
    /// Moves the frame into the texture. Only for interop, and in the window's thread.
    void show(const taken_frame& f, unsigned texture);
    /// Returns those parts of the picture's description that do not depend on a frame.
    [[nodiscard]] shown_picture about() const;

private:
    void choose_plane(const run::mapped_ring& ring, const std::string& plane);
    void open_device(const run::mapped_ring& ring, interop_maker make, picture_way way);

    std::string stage_, path_;
    ring::frame_format format_;
    plane_picture picture_;
    // These members are constructed in this order and destroyed in reverse order.
    std::unique_ptr<device::context> context_;
    std::unique_ptr<device::queue> queue_, window_queue_;
    std::unique_ptr<interop> interop_;
    std::unique_ptr<carousel::session::newest_frame> newest_;
};

using carousel::session::discarded;

class tap {
public:
    /// `c` is a writable mapping of the run, which must outlive the tap. For `make`, see ring_tap; two
    /// pictures are always copied through host memory.
    tap(shm::control_block& c, const std::string& socket_path, const picture_choice& what, interop_maker make,
        picture_way way = picture_way::best, const picture_styles& styles = {});
    ~tap();
    tap(const tap&) = delete;
    tap& operator=(const tap&) = delete;

    /// If the tap has taken another frame since the last call, makes it the shown frame, requests the next
    /// frame, and returns true. Throws device_error.
    [[nodiscard]] bool poll();
    /// Drops a frame that was taken before this call and has not been shown yet, so that it is not shown
    /// later.
    void refresh();
    /// Sets the styles by which values become colours from now on. Returns true if the shown frame has been
    /// painted again.
    [[nodiscard]] bool set_styles(const picture_styles& styles);
    /// Moves the frame into the texture. Only for interop, after poll().
    void show(unsigned texture) { first_->show(front_.frame[0], texture); }

    [[nodiscard]] u32 width() const noexcept { return width_; }
    [[nodiscard]] u32 height() const noexcept { return height_; }
    [[nodiscard]] u64 ring_sequence() const noexcept { return front_.frame[0].ring_sequence; }
    [[nodiscard]] discarded losses();
    [[nodiscard]] const std::string& stage() const noexcept { return first_->stage(); }
    /// Returns the last complete frame as RGBA8, top row first; null if interop is used.
    [[nodiscard]] const std::byte* pixels() const noexcept;
    [[nodiscard]] bool on_gpu() const noexcept { return first_->on_gpu(); }
    /// Describes how a frame gets to the screen, and why a more direct way is not used.
    [[nodiscard]] const std::string& path() const noexcept { return first_->path(); }
    /// Returns the time from the lease of the shown frame in the ring to its release.
    [[nodiscard]] f64 copy_ms() const noexcept { return front_.frame[0].took_ms + front_.frame[1].took_ms; }
    /// The one or two pictures that are shown.
    [[nodiscard]] const std::vector<shown_picture>& shown() const noexcept { return front_.shown; }
    /// If two pictures do not show the same frame, returns the reason: "frames 14 and 12 are shown together:
    /// ...". Otherwise returns "".
    [[nodiscard]] const std::string& note() const noexcept { return front_.note; }
    /// Returns the content of a pixel of the whole image. Returns nullopt if the pixel is outside every
    /// picture, if there is no picture yet, or if the picture is on the GPU.
    [[nodiscard]] std::optional<pointed_pixel> pixel_at(u32 x, u32 y) const;

private:
    /// What the screen shows at one time.
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
    std::vector<shown_picture> places_;  ///< descriptions of the pictures, with their positions
    u32 width_ = 0, height_ = 0;
    shot front_, ready_, back_;  ///< shown; taken; being taken
    // Used only by the tap's thread.
    bool compared_leads_ = false;  ///< true if frames arrive in the compared ring first
    u64 unpaired_since_ns_ = 0;    ///< time since which no pair was found; 0: the last frames were a pair
    // Both threads use the members below, which the mutex protects.
    std::mutex mutex_;
    std::condition_variable wake_;
    bool wanted_ = true, fresh_ = false, stop_ = false;
    picture_styles styles_;
    discarded losses_;
    std::string failure_;
    std::thread thread_;
};

}  // namespace carousel::viewer
