#pragma once
// The newest picture of a run for display: of one ring, or of two side by side.
// The tap's thread sleeps on a doorbell of the ring. After the window has shown the last frame, the thread
// takes the newest frame as soon as it appears, because a frame may stay in the ring for only a fraction of a
// millisecond. The thread also computes the colours. The public functions belong to the window's thread. The
// constructor throws error (no answer, no such picture, no such device here); poll() throws device_error if
// the GPU failed.
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

#include "device/backend.hpp"
#include "session/newest_frame.hpp"
#include "viewer/watch/picture_choice.hpp"

namespace carousel::viewer {

// The viewer's interface to CUDA-GL interop: a frame goes from ring memory into a GL texture without leaving
// the GPU. This requires that the current GL context is on the same GPU; otherwise the frame is copied
// through page-locked host memory. To be called only in the window's thread, with its GL context current.

class interop {
public:
    virtual ~interop() = default;
    /// Enqueues the copy of a picture (RGBA8, dense, memory of this GPU) into the pixel buffer. Throws
    /// cuda_error.
    virtual void copy(device::queue& q, const std::byte* from) = 0;
    /// Moves the pixel buffer into the texture. The GPU orders this after the copy; the caller does not wait.
    /// Throws cuda_error.
    virtual void show(unsigned texture, u32 width, u32 height) = 0;
};

/// Makes an interop, or returns null and sets `why_not`. The tap gets this function so that it does not
/// depend on GL itself; a null function means that there is no GL.
using interop_maker = std::unique_ptr<interop> (*)(const device::device_id& device, u64 bytes,
                                                   std::string& why_not);

// Reads one plane of one ring, frame by frame. session/newest_frame.hpp takes a frame completely or not at
// all, and never blocks the run. To be used from one thread at a time. The constructor throws error (no
// answer, no such picture, no such device here); take() throws cuda_error if the GPU failed.

/// Keeps this process out of the stages' MPS domain, because a fault of one client ends all clients of a
/// domain. To be called first in main(), because it changes the environment, which other threads may read
/// later.
void stay_outside_mps() noexcept;

/// How a frame gets from the ring to the screen.
enum class picture_way : u8 {
    best,     ///< interop if available, otherwise a copy
    interop,  ///< CUDA-GL interop or no picture
    copy,     ///< through host memory even if interop is available, for comparison
};

/// A frame taken from the ring.
struct taken_frame {
    std::unique_ptr<device::mapping> bytes;  ///< memory of the plane; in GPU memory with interop
    u64 ring_sequence = 0;
    f64 took_ms = 0;  ///< lease to release
    picture_part used;
    carried_facts carried;
};

class ring_tap {
public:
    /// `c` is a writable mapping of the run that outlives this object. `make` is tried if the ring is in GPU
    /// memory, with a GL context current; null: there is no GL.
    ring_tap(shm::control_block& c, const std::string& socket_path, const plane_choice& what,
             interop_maker make, picture_way way);

    /// Allocates memory for one frame.
    [[nodiscard]] taken_frame make_room();
    /// Takes the newest frame that is newer than the last one taken; with `only`, takes only that frame.
    /// Returns false if there is none at the moment, or if it was not read completely.
    [[nodiscard]] bool take(taken_frame& to, u64 only = ring::any_ring_sequence);
    /// True if that frame is in the ring or has not arrived yet; false if it has left the ring.
    [[nodiscard]] bool may_arrive(u64 ring_sequence) const noexcept {
        return newest_->may_arrive(ring_sequence);
    }
    [[nodiscard]] shm::doorbell_word& bell() const noexcept { return newest_->bell(); }
    [[nodiscard]] const carousel::session::discarded& losses() const noexcept { return newest_->losses(); }

    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    [[nodiscard]] const plane_picture& picture() const noexcept { return picture_; }
    /// Describes the path of a frame to the screen, and the reason why it is not a more direct one.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] bool on_gpu() const noexcept { return interop_ != nullptr; }
    /// For interop only, in the window's thread: moves the frame into the texture.
    void show(const taken_frame& f, unsigned texture);
    /// The description that needs no frame.
    [[nodiscard]] shown_picture about() const;

private:
    void choose_plane(const run::mapped_ring& ring, const std::string& plane);
    void open_device(const run::mapped_ring& ring, interop_maker make, picture_way way);

    std::string stage_, path_;
    ring::frame_format format_;
    plane_picture picture_;
    // In order of construction; destroyed in reverse order.
    std::unique_ptr<device::context> context_;
    std::unique_ptr<device::queue> queue_, window_queue_;
    std::unique_ptr<interop> interop_;
    std::unique_ptr<carousel::session::newest_frame> newest_;
};

using carousel::session::discarded;

class tap {
public:
    /// `c` is a writable mapping of the run that outlives the tap. `make`: see tap.hpp; two pictures
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
    /// The time from the lease of the shown frame in the ring to its release.
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
