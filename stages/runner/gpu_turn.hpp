#pragma once
// A stage's turns on its GPU: when the main thread may begin a frame, and when the turn goes on to the next
// stage. The token itself, and what a death leaves of it, is in ring/turn.hpp.
//
// A turn is taken when there is a frame to begin, and never before. It closes after so many frames, or at the
// first moment in which none can be begun. It is handed on when the frames that it has submitted are complete
// on the device, but for the last few: the next stage's process is woken, and queues its work, while the
// device is busy with these.

#include <memory>
#include <mutex>

#include "core/clock.hpp"
#include "ring/turn.hpp"

namespace carousel::stages {

/// Of how many frames a turn is that the run chooses: all that are in flight, but no more than fill
/// `fullest_turn_ns`. Longer turns bring nothing (a change of turns costs 0.3 ms at most), and the other
/// stages, on other GPUs too, would wait for their input meanwhile. `work_ns`: of a frame; 0: not known.
inline constexpr u64 fullest_turn_ns = 8'000'000;
[[nodiscard]] u32 frames_of_a_turn(u32 lanes, u64 work_ns) noexcept;

class gpu_turn {
public:
    /// `token`: none where the stage takes no turns. `now`: the clock, which a test moves by hand.
    gpu_turn(shm::control_block& c, u32 token, u32 seat, u64 (*now)() noexcept = &now_ns);

    /// Turns of `frames`, 0: none are taken (and one that is held is handed on). `work_ns`: what a frame
    /// takes on the device, 0: not known. The main thread, as the next three.
    void set(u32 frames, u64 work_ns);
    /// Whether a frame may be begun now, which takes the turn where that is needed.
    [[nodiscard]] bool may_begin();
    void submitted();
    /// Nothing can be begun: the turn closes.
    void on_idle();
    /// The device is done with a frame. One thread at a time, in the order of submission.
    void complete();
    /// How long to wait for the turn, once may_begin() has said no.
    [[nodiscard]] u64 patience_ns() const;

private:
    void close();  ///< mutex_ held, as for the next two
    void pass_on_if_done();
    [[nodiscard]] bool take(u64 now);

    u64 (*now_)() noexcept;
    std::unique_ptr<ring::turn> turn_;
    shm::stage_counters* counters_ = nullptr;

    mutable std::mutex mutex_;  ///< this process's own
    u32 frames_ = 0;            ///< of a turn; 0: none are taken
    u32 limit_us_ = ring::longest_turn_us;
    u32 early_ = 0;        ///< so many frames before the last one is complete it goes on
    u32 left_ = 0;         ///< frames that may be begun in this turn
    u32 outstanding_ = 0;  ///< submitted, not yet complete on the device
    bool held_ = false;    ///< as far as this process knows
};

}  // namespace carousel::stages
