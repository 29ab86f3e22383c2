#pragma once
// Manages a stage's turns on its GPU: determines when the main thread may begin a frame, and when the turn is
// passed on to the next stage. ring/turn.hpp describes the token itself, and what a crash leaves of it.
//
// A stage takes a turn only when it has a frame to begin. The turn closes after N frames, or as soon as no
// frame can begin. The turn is passed on when all but the last few of its submitted frames are complete on
// the device: while the device processes these last frames, the next stage's process wakes up and queues its
// work.

#include <memory>
#include <mutex>

#include "core/clock.hpp"
#include "ring/turn.hpp"

namespace carousel::stages {

/// Returns the number of frames per turn that the run chooses: all frames in flight, but no more than fit
/// into `fullest_turn_ns`. Longer turns bring no advantage (a change of turns costs at most 0.3 ms), and
/// during them other stages, also on other GPUs, would wait for their input. `work_ns`: time per frame; 0:
/// unknown.
inline constexpr u64 fullest_turn_ns = 8'000'000;
[[nodiscard]] u32 frames_of_a_turn(u32 lanes, u64 work_ns) noexcept;

class gpu_turn {
public:
    /// `token`: none if the stage takes no turns. `now`: returns the time; a test passes another clock.
    gpu_turn(shm::control_block& c, u32 token, u32 seat, u64 (*now)() noexcept = &now_ns);

    /// Sets the length of turns to `frames`; 0: no turns are taken, and a held turn is passed on. `work_ns`:
    /// time per frame on the device, 0: unknown. Called by the main thread, like the next three functions.
    void set(u32 frames, u64 work_ns);
    /// True if a frame may begin now; takes the turn if necessary.
    [[nodiscard]] bool may_begin();
    void submitted();
    /// Called when no frame can begin: closes the turn.
    void on_idle();
    /// Called when the device has completed a frame, by one thread at a time and in the order of submission.
    void complete();
    /// Returns how long to wait for the turn after may_begin() has returned false, in ns.
    [[nodiscard]] u64 patience_ns() const;

private:
    void close();  ///< called with mutex_ held, like the next two functions
    void pass_on_if_done();
    [[nodiscard]] bool take(u64 now);

    u64 (*now_)() noexcept;
    std::unique_ptr<ring::turn> turn_;
    shm::stage_counters* counters_ = nullptr;

    mutable std::mutex mutex_;  ///< process-local
    u32 frames_ = 0;            ///< frames per turn; 0: no turns are taken
    u32 limit_us_ = ring::longest_turn_us;
    u32 early_ = 0;        ///< the turn is passed on when at most this number of frames is still outstanding
    u32 left_ = 0;         ///< number of frames that may still begin in this turn
    u32 outstanding_ = 0;  ///< number of frames submitted and not yet complete on the device
    bool held_ = false;    ///< this process's own record of whether it holds the turn
};

}  // namespace carousel::stages
