#pragma once
// Commits by an observing consumer: a live member of a blocking group, while it has no other work, polls
// the events of the frames that it waits for, and commits those frames itself. So a frame is not
// delayed if its owner is busy, is descheduled, or dies right after submitting it.
//
// The correctness depends on this order (if a step is omitted, frames tear):
//   1. read S = FILL(job, v);
//   2. read J = SUBMITTED(v, e);
//   3. query the event that was imported from the incarnation with the epoch e, if that incarnation is of the
//      helper's own MPS domain;
//   4. change J to COMMITTED by a CAS that expects exactly the J value that was read.
// A helper never commits a job that is OPEN, because an event that was never recorded, or was recorded for
// the slot's earlier frame, reads as complete. A helper in another MPS domain survives the end of the owner's
// domain, after which events of unfinished work may read as complete. After the commit the helper marks the
// slot READY and does nothing else: inputs and the job word belong to the owner, or to the supervisor once
// the owner is dead. Called by one thread. An import may take 0.1 ms per event, so events are imported here,
// where the stage is idle anyway.

#include <map>
#include <memory>
#include <vector>

#include "device/backend.hpp"
#include "ring/link.hpp"
#include "ring/takeover_pause.hpp"

namespace carousel::ring {

class helper {
public:
    /// `domain`: the generation of the MPS domain of this process, 0 if it has its own GPU context.
    helper(shm::control_block& c, device::context& context, u32 domain = 0)
        : control_(&c), context_(&context), domain_(domain) {}
    /// Checks all frames in progress in `link` once; returns how many of them it has committed or made READY.
    u32 help(link_ref& link) noexcept;
    [[nodiscard]] u64 commits() const noexcept { return commits_; }
    /// During the pause no further event is imported, because an import takes locks of the driver. Frames of
    /// owners whose events are not imported are then committed by the owners alone.
    void put_off_imports(takeover_pause& pause) noexcept { pause_ = &pause; }

private:
    struct import {
        u64 identity = 0;  ///< epoch and seat in the entry's word when the entry's events were imported
        std::vector<std::unique_ptr<device::imported_event>> events;
        std::vector<bool> tried;
    };
    /// Returns the event of that slot of `link`, which must be the first output of the seat's stage.
    [[nodiscard]] device::imported_event* event_of(u32 link, u32 seat, u32 epoch, u32 slot) noexcept;
    /// A job of the stage `owner` has filled `slot` of `link` with the word `s`. Returns the slot whose event
    /// is the event of that job; this slot is in the first output of `owner`.
    [[nodiscard]] u32 event_slot(const shm::stage_block& owner, const link_ref& link, u32 slot,
                                 const slot_word& s) noexcept;

    shm::control_block* control_;
    device::context* context_;
    u32 domain_;
    std::map<u32, import> imports_;  ///< by entry
    takeover_pause* pause_ = nullptr;
    u64 commits_ = 0;
};

}  // namespace carousel::ring
