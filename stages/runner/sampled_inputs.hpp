#pragma once
// The sampled inputs of a stage (the key `sampled` of its table): the newest frame of each is copied into
// process-local memory under a lease of a latest member, before the job of the stage's own frame is OPEN. The
// lease ends when the copy is complete, so no process waits for this stage; the stage's frames read only the
// copy.
//
// Which frame is sampled depends on timing, so a frame that is made again after a crash may get a different
// one. The sequence of the sampled frame is recorded in the header of the frame that used it, and the stage's
// results cannot be compared with those of another run.
//
// What a crash leaves: the copy is made before this stage begins its own frame, so no frame of this stage is
// affected. If a process dies or stops while it holds such a lease, the lease is revoked by a process that
// finds the lease too old, or by the supervisor together with the dead process's place in the group
// (ring/latest.hpp). Data that was copied under a revoked lease is discarded, and the previous copy is kept.
// A successor starts without a copy. A standby too has no copy at first, because it joins the group only
// after it has taken over.
//
// Threads: used by the runner's main thread. Other threads read the copies that are held by their frames.

#include <memory>
#include <span>
#include <vector>

#include "session/newest_frame.hpp"
#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

/// Content of one copy. The copy is written only while no frame uses it and while it is not the current copy.
struct sampled_copy {
    std::unique_ptr<device::mapping> memory;
    ring::frame_facts facts;
};

/// One sampled input of a stage.
class sampled_input {
public:
    sampled_input(runtime& r, u32 index);
    /// Copies the newest frame if it is newer than the frame of the current copy. `frames`: the frames whose
    /// copies are in use.
    void take(std::span<const std::unique_ptr<frame_in_work>> frames);
    /// Null if there has been no frame yet.
    [[nodiscard]] const sampled_copy* current() const noexcept { return current_; }

private:
    [[nodiscard]] bool join();
    [[nodiscard]] sampled_copy& spare(std::span<const std::unique_ptr<frame_in_work>> frames);
    void copy(sampled_copy& to);

    runtime* runtime_;
    u32 index_;
    std::unique_ptr<device::queue> queue_;  ///< a separate queue, so that a copy does not wait for the
                                            ///< stage's work
    session::newest_reader reader_;
    /// contains one more copy than the largest number that was ever in use at the same time
    std::vector<std::unique_ptr<sampled_copy>> copies_;
    const sampled_copy* current_ = nullptr;
    bool full_logged_ = false;
};

/// All sampled inputs of a stage.
class sampled_inputs {
public:
    explicit sampled_inputs(runtime& r);
    void take(std::span<const std::unique_ptr<frame_in_work>> frames) {
        for (const auto& s : all_) s->take(frames);
    }
    /// Gives the current copies to the frame that begins next.
    void assign(frame_in_work& f, ring::worker& w) const noexcept;
    /// Used for an abandoned frame that is saved as a dead letter. The frame's own copies were lost with the
    /// process that had made them, so this function polls until it has a copy of each sampled input, for at
    /// most `patience_ns`. A process that has just started may find no sampled frame at first, because its
    /// predecessor's place as a reader is not free yet.
    void wait_for_copies(frame_in_work& f, std::span<const std::unique_ptr<frame_in_work>> frames,
                         u64 patience_ns);

private:
    std::vector<std::unique_ptr<sampled_input>> all_;
};

}  // namespace carousel::stages
