#pragma once
// One ring, as used by any process of the run: scanning for frames, and the changes that any process may make
// (marking a committed frame READY, moving the tail, freeing slots). A view: owns nothing.
//
// Sync points (words.hpp gives the orders):
//   FILL -> READY       after J has been read as COMMITTED(v): acquire on J, release on S; a process that
//                       reads READY can read the header.
//   tail T -> T+1       the READY slot of sequence T is DONE or SKIPPED in all blocking groups. T only grows:
//                       each change is one CAS that increments it by one.
//   READY -> FREE(g+1)  for slots below T, after every latest column was closed (WAIT -> SKIPPED). A member
//                       of a `latest` group leases by a CAS on the same word, so either it gets the lease
//                       before the close (and the slot stays), or its CAS fails. The newest frame is kept for
//                       these members as long as another slot is FREE: a member that wakes late still finds a
//                       frame. If no other slot is FREE, the sweep frees the newest frame's slot, so no
//                       process ever waits for a slot that is kept. In a ring of states the slot of T - 1 is
//                       never freed: the next state is computed from it. Such a ring has one more slot.
// Crash: each step is one CAS on a stable condition, so a process that dies between two steps leaves work
// that the next process that sweeps completes.

#include <array>

#include "ring/words.hpp"

namespace carousel::shm {
class block_open_late;
}

namespace carousel::ring {

/// A slot as it was read: its word, and the sequence of the frame in it.
struct slot_ref {
    u32 index = shm::none;
    slot_word word{};
    u64 ring_sequence = 0;
    [[nodiscard]] explicit operator bool() const noexcept { return index != shm::none; }
};

/// The READY frames of one link, by distance from the tail. Filled in one pass over the slots.
struct ready_map {
    u64 tail = 0;
    u32 window = 0;
    slot_ref at[shm::max_window];
};

class link_ref {
public:
    link_ref(shm::control_block& c, u32 index) noexcept;

    [[nodiscard]] shm::link_block& block() const noexcept { return *link_; }
    [[nodiscard]] u32 index() const noexcept { return index_; }
    [[nodiscard]] u64 tail() const noexcept { return load(link_->tail); }
    [[nodiscard]] u32 window() const noexcept { return window_; }
    [[nodiscard]] u32 slots() const noexcept { return slots_; }

    /// The header of a slot's frame; final for a reader that has found the slot READY and has leased it.
    /// `slot` is below slots().
    [[nodiscard]] const shm::frame_header& header(u32 slot) const noexcept { return headers_[slot]; }
    /// May be used by the owner of the slot's FILL word, between FILL and SUBMITTED, in a process that has
    /// opened the ring's frame segment (shm::segment::open_frames).
    [[nodiscard]] shm::frame_header& header_to_write(u32 slot) noexcept { return headers_[slot]; }

    /// Returns the slot with the number of its frame if it is READY and was not reused meanwhile; otherwise
    /// empty.
    [[nodiscard]] slot_ref ready_slot(u32 slot) const noexcept;
    /// READY frames in [tail, tail + window).
    void read_ready(ready_map& out) const noexcept;
    /// True if the group's stage takes the frame with that sequence; false for a frame that a stage with
    /// `every` leaves out. The result depends only on the plan, so it is the same before and after a death.
    [[nodiscard]] bool takes(u32 group, u64 ring_sequence) const noexcept {
        return group >= shm::max_blocking || every_[group] == 1 || ring_sequence % every_[group] == 0;
    }
    /// Returns the group's word for a slot, interpreted at the slot's generation; WAIT reads as SKIPPED if
    /// the group does not take the frame. `raw` is set to the exact word for a CAS.
    [[nodiscard]] lease_word lease(const slot_ref& slot, u32 group, u64& raw) const noexcept;
    [[nodiscard]] bool has_free_slot() const noexcept;
    /// Returns true if a READY slot holds the frame with that sequence.
    [[nodiscard]] bool is_ready(u64 ring_sequence) const noexcept;
    /// FREE -> FILL for the job. Empty if no slot is free.
    [[nodiscard]] slot_ref claim(u32 job, u64 version) noexcept;

    /// FILL -> READY of the job's slot; returns true if this call has changed the slot. To be called only
    /// after J was read as COMMITTED(version).
    bool mark_ready(u32 slot, u32 job, u64 version) noexcept;
    /// S7: moves the tail, then frees the slots below the tail. The slot of the newest frame is kept as long
    /// as another slot is FREE and at least one member of a `latest` group still has the word WAIT for that
    /// frame. Returns true, and rings the doorbells, if anything changed.
    bool sweep() noexcept;
    /// Rings the doorbell of every stage at this link.
    void ring() noexcept;

private:
    [[nodiscard]] bool done_in_all_groups(const slot_ref& slot) noexcept;
    [[nodiscard]] bool has_passed_all_groups(u32 slot, u32 generation) const noexcept;
    bool close_latest(u32 slot, u32 generation) noexcept;
    [[nodiscard]] u32 newest_for_latest(u64 tail) const noexcept;
    [[nodiscard]] bool is_awaited(u32 slot) const noexcept;
    bool free_below(u64 tail, u32 slot, shm::block_open_late& open) noexcept;

    shm::control_block* control_;
    shm::link_block* link_;
    shm::frame_header* headers_;
    u32 index_, slots_, window_, blocking_;
    bool keeps_last_ = false;  ///< a ring of states: the state just below the tail is not freed
    std::array<u32, shm::max_blocking> every_;
    u32 bells_ = 0;  ///< stages at this link, one bit per stage
};

}  // namespace carousel::ring
