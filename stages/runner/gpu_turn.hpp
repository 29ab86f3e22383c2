#pragma once
// A stage's turns on its GPU: when the main thread may begin a frame, and when the turn is passed on to the
// next stage. The token itself, and what a crash leaves of it: ring/turn.hpp.
//
// A turn is taken when there is a frame to begin, never earlier. It closes after N frames, or as soon as no
// frame can begin. It is passed on when its submitted frames are complete on the device, except the last few:
// the next stage's process wakes and queues its work while the device is busy with these.

#include <memory>
#include <mutex>

#include "core/clock.hpp"
#include "ring/turn.hpp"

namespace carousel::stages {

/// Returns the number of frames per turn that the run chooses: all frames in flight, but no more than fill
/// `fullest_turn_ns`. Longer turns gain nothing (a change of turns costs 0.3 ms at most), and the other
/// stages, also on other GPUs, would wait for their input meanwhile. `work_ns`: time per frame; 0: unknown.
inline constexpr u64 fullest_turn_ns = 8'000'000;
[[nodiscard]] u32 frames_of_a_turn(u32 lanes, u64 work_ns) noexcept;

class gpu_turn {
public:
    /// `token`: none if the stage takes no turns. `now`: the clock, which a test replaces.
    gpu_turn(shm::control_block& c, u32 token, u32 seat, u64 (*now)() noexcept = &now_ns);

    /// Sets the length of turns to `frames`; 0: no turns are taken, and a held turn is passed on. `work_ns`:
    /// time per frame on the device, 0: unknown. Main thread, as the next three.
    void set(u32 frames, u64 work_ns);
    /// Whether a frame may begin now; takes the turn if necessary.
    [[nodiscard]] bool may_begin();
    void submitted();
    /// No frame can begin: closes the turn.
    void on_idle();
    /// The device has completed a frame. One thread at a time, in the order of submission.
    void complete();
    /// How long to wait for the turn after may_begin() has returned false, in ns.
    [[nodiscard]] u64 patience_ns() const;

private:
    void close();  ///< mutex_ held, as for the next two
    void pass_on_if_done();
    [[nodiscard]] bool take(u64 now);

    u64 (*now_)() noexcept;
    std::unique_ptr<ring::turn> turn_;
    shm::stage_counters* counters_ = nullptr;

    mutable std::mutex mutex_;  ///< process-local
    u32 frames_ = 0;            ///< per turn; 0: no turns are taken
    u32 limit_us_ = ring::longest_turn_us;
    u32 early_ = 0;        ///< frames still outstanding when the turn is passed on
    u32 left_ = 0;         ///< frames that may still begin in this turn
    u32 outstanding_ = 0;  ///< submitted, not yet complete on the device
    bool held_ = false;    ///< as far as this process knows
};

}  // namespace carousel::stages
