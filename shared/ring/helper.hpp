#pragma once
// Commits by an observing consumer: a live member of a blocking group that would idle looks at the events of
// the frames it waits for and commits them itself. So a frame whose owner is busy, descheduled or dying right
// behind its submission is not held up.
//
// The order is the proof (leave one out and frames tear): read S = FILL(job, v); read J = SUBMITTED(v, e);
// ask the event imported from the incarnation whose epoch is e; CAS that very J value. Never from OPEN: an
// event that was never recorded, or was for the slot's earlier frame, reads as complete. A helper marks the
// slot READY and does nothing else: inputs and the job word belong to the owner, or to the supervisor once
// the owner is dead. Called by one thread. Importing may take 0.1 ms an event, hence it happens here, where
// the stage idles anyway.

#include <map>
#include <memory>
#include <vector>

#include "device/backend.hpp"
#include "ring/link.hpp"

namespace carousel::ring {

class helper {
public:
    helper(shm::control_block& c, device::context& context) : control_(&c), context_(&context) {}
    /// Looks once at all frames under way in `link`; returns the number of commits made.
    u32 help(link_ref& link) noexcept;
    [[nodiscard]] u64 commits() const noexcept { return commits_; }

private:
    struct import {
        u64 identity = 0;  ///< the entry word's epoch and seat when it was imported
        std::vector<std::unique_ptr<device::imported_event>> events;
        std::vector<bool> tried;
    };
    /// The event of that slot of `link`, the first output of the seat's stage.
    [[nodiscard]] device::imported_event* event_of(u32 link, u32 seat, u32 epoch, u32 slot) noexcept;
    /// Whose event covers the job that has filled `slot` of `link` as `s` says: a slot of its first output.
    [[nodiscard]] u32 event_slot(const shm::stage_block& owner, const link_ref& link, u32 slot,
                                 const slot_word& s) noexcept;

    shm::control_block* control_;
    device::context* context_;
    std::map<u32, import> imports_;  ///< by entry
    u64 commits_ = 0;
};

}  // namespace carousel::ring
