#pragma once
// One plane of one ring, frame by frame: run/newest_frame.hpp takes the frames, whole or not at all, and
// holds nobody up. One thread at a time. Errors: the constructor throws error (no answer, no such picture, no
// device here); take() throws cuda_error when the GPU failed.

#include <memory>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "run/newest_frame.hpp"
#include "viewer/watch/interop.hpp"
#include "viewer/watch/picture_choice.hpp"

namespace carousel::viewer {

/// A viewer in the stages' MPS domain would end with them, and they with it. Called first in main(): it
/// changes the environment, which other threads may read later.
void stay_outside_mps() noexcept;

/// How a frame may get from the ring to the screen.
enum class picture_way : u8 {
    best,     ///< interop where it can be had, else a copy
    interop,  ///< CUDA-GL interop or no picture
    copy,     ///< through host memory, also where interop could be had: to compare
};

/// A frame out of the ring.
struct taken_frame {
    std::unique_ptr<device::mapping> bytes;  ///< of the plane; with interop in memory of the GPU
    u64 ring_sequence = 0;
    f64 took_ms = 0;  ///< lease to release
    picture_part used;
    carried_facts carried;
};

class ring_tap {
public:
    /// `c` is a writable mapping of the run that outlives this. `make`: tried where the ring lies on a GPU,
    /// with a GL context current; null: there is no GL.
    ring_tap(shm::control_block& c, const std::string& socket_path, const plane_choice& what,
             interop_maker make, picture_way way);

    /// Room for a frame.
    [[nodiscard]] taken_frame make_room();
    /// The newest frame, newer than the last; with `only` that one and no other. False: it is not there now,
    /// or was not whole.
    [[nodiscard]] bool take(taken_frame& to, u64 only = ring::any_ring_sequence);
    /// That frame is in the ring, or has yet to come: it is not gone.
    [[nodiscard]] bool may_arrive(u64 ring_sequence) const noexcept {
        return newest_->may_arrive(ring_sequence);
    }
    [[nodiscard]] shm::doorbell_word& bell() const noexcept { return newest_->bell(); }
    [[nodiscard]] const run::discarded& losses() const noexcept { return newest_->losses(); }

    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    [[nodiscard]] const plane_picture& picture() const noexcept { return picture_; }
    /// How a frame gets to the screen, and why not more directly.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] bool on_gpu() const noexcept { return interop_ != nullptr; }
    /// Interop only, in the window's thread: moves the frame into the texture.
    void show(const taken_frame& f, unsigned texture);
    /// What there is to say of it without a frame.
    [[nodiscard]] shown_picture about() const;

private:
    void choose_plane(const run::mapped_ring& ring, const std::string& plane);
    void open_device(const run::mapped_ring& ring, interop_maker make, picture_way way);

    std::string stage_, path_;
    ring::frame_format format_;
    plane_picture picture_;
    // In the order of their making; taken down the other way round.
    std::unique_ptr<device::context> context_;
    std::unique_ptr<device::queue> queue_, window_queue_;
    std::unique_ptr<interop> interop_;
    std::unique_ptr<run::newest_frame> newest_;
};

}  // namespace carousel::viewer
