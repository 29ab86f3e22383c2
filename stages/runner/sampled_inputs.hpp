#pragma once
// The sampled inputs of a stage (the key `sampled` of its table): of each the newest frame, copied into
// memory of this process's own under a lease of a latest member, before the job of the stage's own frame is
// OPEN. The lease ends with the copy, so nobody waits for this stage; the stage's frames read the copy for as
// long as they are in work.
//
// Which frame that is is a matter of the moment: a frame that is made again after a death may find another
// one beside it. It is noted in the frame's header, and what is made of it can't be compared with another
// run's.
//
// Crash: nothing of this stage's own frame has begun here. A lease that a dead or stopped process leaves is
// revoked by whoever finds it too old, or with its place in the group by the supervisor (ring/latest.hpp);
// what was copied under a revoked lease is thrown away, and the copy before it stays. A successor begins
// without a copy, a standby as well: it joins when it has taken over.
//
// Who may call: the runner's main thread. Other threads read the copies that their frames hold.

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "ring/latest.hpp"
#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

/// What one copy holds. Written while no frame holds it and it is not the current one.
struct sampled_copy {
    std::unique_ptr<device::mapping> memory;
    sampled_frame::about about;
    shm::used_extents used{};
    std::array<std::byte, shm::max_metadata_bytes> metadata;
    std::array<std::byte, shm::max_parameter_bytes> parameters;
};

/// One of them.
class sampled_input {
public:
    sampled_input(runtime& r, u32 index);
    /// Copies the newest frame, if it is newer than the current copy's. `frames`: whose copies are in use.
    void take(std::span<const std::unique_ptr<frame_in_work>> frames);
    /// Null: there was no frame yet.
    [[nodiscard]] const sampled_copy* current() const noexcept { return current_; }

private:
    [[nodiscard]] bool join();
    [[nodiscard]] sampled_copy& spare(std::span<const std::unique_ptr<frame_in_work>> frames);
    [[nodiscard]] bool copy(const ring::slot_ref& slot, const shm::frame_header& h, sampled_copy& to);

    runtime* runtime_;
    u32 index_;
    std::unique_ptr<device::queue> queue_;  ///< its own: a copy waits for none of the stage's work
    std::unique_ptr<device::mapping> torn_;
    shm::word event_word_{0};
    std::unique_ptr<device::event> event_;
    std::unique_ptr<ring::latest_reader> reader_;
    std::vector<std::unique_ptr<sampled_copy>> copies_;  ///< as many as were ever in use at once, and one
    const sampled_copy* current_ = nullptr;
    u64 next_ = 0;  ///< only sequences from here on
    bool full_logged_ = false;
};

/// All of a stage.
class sampled_inputs {
public:
    explicit sampled_inputs(runtime& r);
    void take(std::span<const std::unique_ptr<frame_in_work>> frames) {
        for (const auto& s : all_) s->take(frames);
    }
    /// The frame that is begun next has these copies.
    void assign(frame_in_work& f, ring::worker& w) const noexcept;
    /// For a frame that is given up and kept, whose own copies died with its process: looks until there is
    /// one of each, or for `patience_ns`. A process that has just begun may find none at its first look, for
    /// its predecessor's place as a reader is not free yet.
    void wait_for_copies(frame_in_work& f, std::span<const std::unique_ptr<frame_in_work>> frames,
                         u64 patience_ns);

private:
    std::vector<std::unique_ptr<sampled_input>> all_;
};

}  // namespace carousel::stages
