#pragma once
// Reads one plane of one ring, frame by frame. session/newest_frame.hpp takes a frame completely or not at
// all, and never blocks the run. To be used from one thread at a time. The constructor throws error (no
// answer, no such picture, no such device here); take() throws cuda_error if the GPU failed.

#include <memory>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "session/newest_frame.hpp"
#include "viewer/watch/interop.hpp"
#include "viewer/watch/picture_choice.hpp"

namespace carousel::viewer {

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

}  // namespace carousel::viewer
