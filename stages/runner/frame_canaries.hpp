#pragma once
// Canaries after slots (device/canary.hpp). The last launch of a frame checks the canaries of its inputs and
// outputs, after all work that the stage has enqueued. Damage persists, so a check after the work also finds
// the damage that a check before the work would have found. One launch with all checks costs a GPU less time
// than two launches. An input that this process or another reader can write to is checked by the first launch
// instead, because later damage is probably not caused by the input's producer. The host reads the results of
// the checks here, between the event and the commit. No other process reads these results, so no other
// process may commit the frames of a stage with a canary (stage_flag::owner_commits).
//
// This process plants a slot's canary when it makes its first frame in the slot, before it launches the graph
// of this frame. If the canary is intact after one frame, it is not planted again for the next frame. If
// other processes can write into that slot too (instances that fill the same ring, readers that map it for
// writing), each frame plants its canaries: a wild write into a free slot could not be attributed to a
// process.
//
// A stage that completes its output on the host (commits_on_host) still writes after the frame's last launch,
// which checks the canaries. So a second check follows finish(), on a separate queue, because the stage's
// queue belongs to the main thread.
//
// What a crash leaves. If the process crashes before the event, R2 aborts the unfinished work, whose slot is
// quarantined. A crash between the event and the commit, including the check, leaves a SUBMITTED job, which
// R2 aborts; a damaged canary is discarded with its slot. A crash after the commit leaves a frame whose
// canary was intact. A successor uses another pattern and has planted no canary yet, so it plants its
// canaries before anything else.

#include <memory>
#include <mutex>
#include <span>

#include "device/canary.hpp"
#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

class frame_canaries {
public:
    /// `again`: the stage also writes in finish(). If a ring of the stage has canaries, assigns each frame in
    /// `frames` its words.
    frame_canaries(runtime& r, ring::worker& w, std::span<const std::unique_ptr<frame_in_work>> frames,
                   bool again);
    /// Before the frame's graph. Main thread.
    void plant(const frame_in_work& f);
    /// Collects the canaries that a frame's first or last launch checks, at most device::most_canaries,
    /// clears their words and returns their number. Main thread.
    [[nodiscard]] std::size_t steps(const frame_in_work& f, bool first, device::canary_step* out);
    /// Reads the results, between the event and the commit. Ends the process if it has damaged an output's
    /// canary; counts a damaged input as torn.
    void check(const frame_in_work& f);
    /// Called after finish(), on any thread of the pool; if there is no pool, on the completion thread.
    void check_after_finish(const frame_in_work& f);

private:
    [[nodiscard]] std::size_t own_steps(const frame_in_work& f, device::canary_step* out);
    void check_own(const frame_in_work& f);

    runtime* runtime_;
    ring::worker* worker_;
    std::unique_ptr<device::mapping> words_;  ///< words of all frames; null: no ring has canaries
    std::mutex mutex_;                        ///< guards the next two
    std::unique_ptr<device::queue> queue_;    ///< null if finish() does not write to a slot that has a canary
    std::unique_ptr<device::event> done_;
};

}  // namespace carousel::stages
