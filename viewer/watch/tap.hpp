#pragma once
// The newest frame of one ring, for eyes: run/newest_frame.hpp takes it, whole or not at all, and holds
// nobody up.
//
// A thread of its own sleeps on a doorbell of the ring and takes the newest frame as soon as there is one,
// whenever the window has shown the last: a frame may be there for a fraction of a millisecond only. The
// functions below belong to the window's thread. Errors: the constructor throws error (no answer, no such
// picture, no device here); poll() throws cuda_error when the GPU failed.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "device/backend.hpp"
#include "run/newest_frame.hpp"
#include "viewer/watch/carried.hpp"
#include "viewer/watch/interop.hpp"
#include "viewer/watch/plane_picture.hpp"

namespace carousel::viewer {

using run::discarded;

/// How a frame may get from the ring to the screen.
enum class picture_way : u8 {
    best,     ///< interop where it can be had, else a copy
    interop,  ///< CUDA-GL interop or no picture
    copy,     ///< through host memory, also where interop could be had: to compare
};

class tap {
public:
    /// `stage`: whose output; "": what the last sink reads. `c` is a writable mapping of the run that
    /// outlives the tap. `make`: tried where the ring lies on a GPU, with a GL context current; null: there
    /// is no GL.
    tap(shm::control_block& c, const std::string& socket_path, const std::string& stage, interop_maker make,
        picture_way way = picture_way::best);
    ~tap();
    tap(const tap&) = delete;
    tap& operator=(const tap&) = delete;

    /// True when there is a frame newer than the last one; asks for the next.
    [[nodiscard]] bool poll();
    /// Forgets a frame that was taken and not shown: the next one is newer than this call.
    void refresh();
    /// Interop only, after poll(): moves the frame into the texture.
    void show(unsigned texture);

    [[nodiscard]] u32 width() const noexcept { return width_; }
    [[nodiscard]] u32 height() const noexcept { return height_; }
    [[nodiscard]] u64 sequence() const noexcept { return sequence_; }
    [[nodiscard]] discarded losses();
    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    /// The last whole frame, RGBA8, top row first; null on the interop path.
    [[nodiscard]] const std::byte* pixels() const noexcept {
        return interop_ ? nullptr : front_->host_data();
    }
    [[nodiscard]] bool on_gpu() const noexcept { return interop_ != nullptr; }
    /// How a frame gets to the screen, and why not more directly.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    /// What taking the shown frame out of the ring cost, lease to release.
    [[nodiscard]] f64 copy_ms() const noexcept { return copy_ms_; }
    /// What the shown frame carries beside its picture.
    [[nodiscard]] const carried_facts& carried() const noexcept { return carried_; }

private:
    void take_picture_format(const run::lent_ring& ring);
    void open_device(const run::lent_ring& ring, interop_maker make, picture_way way);
    [[nodiscard]] picture_part used_part(const shm::used_extents& used) const;
    void loop();
    [[nodiscard]] bool take_one();

    std::string stage_, path_;
    u32 width_ = 0, height_ = 0;
    u64 offset_ = 0, sequence_ = 0;
    f64 copy_ms_ = 0;
    carried_facts carried_;
    ring::frame_format format_;  ///< of the ring
    // In the order of their making; taken down the other way round.
    std::unique_ptr<device::context> context_;
    std::unique_ptr<device::queue> queue_, window_queue_;
    /// shown; taken; being taken. In interop memory of the GPU
    std::unique_ptr<device::mapping> front_, ready_, back_;
    std::unique_ptr<device::mapping> raw_;  ///< a plane that is no RGBA8, as it lay in the ring; else null
    plane_picture shown_;                   ///< which plane
    std::unique_ptr<interop> interop_;
    std::unique_ptr<run::newest_frame> newest_;
    // Between the two threads, under the mutex.
    std::mutex mutex_;
    std::condition_variable wake_;
    bool wanted_ = true, fresh_ = false, stop_ = false;
    u64 ready_sequence_ = 0;
    f64 ready_ms_ = 0;
    carried_facts ready_carried_;
    discarded losses_;
    std::string failure_;
    std::thread thread_;
};

}  // namespace carousel::viewer
