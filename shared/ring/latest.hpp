#pragma once
// A member of a `latest` group: a viewer, or a display that may skip frames. It joins and leaves at any time,
// leases only the newest READY frame, newer than its last, and never holds a producer up: its lease is
// revocable after latest_lease_ms.
//
// Sync point: lease by CAS on the group word. sweep() closes that word before it frees the slot, so a lease
// either pins the slot or fails. After a revocation (LEASED -> SKIPPED by anyone) the member's own LEASED ->
// DONE fails: what it read is discarded. Crash: a dead member's lease is revoked like a slow one's; its place
// in the group is freed by the supervisor.

#include "ring/link.hpp"

namespace carousel::ring {

inline constexpr u64 any_ring_sequence = ~u64{0};

class latest_reader {
public:
    /// Joins `link` as incarnation `entry` (shm::max_incarnations or more: a tap without one). Check
    /// joined(). Only frames from sequence `from` on are leased. Of the free places it takes the one that was
    /// taken least often, whose word for the newest frame no predecessor has changed.
    latest_reader(shm::control_block& c, u32 link, u32 entry, u64 from = 0) noexcept;
    ~latest_reader();
    latest_reader(const latest_reader&) = delete;
    latest_reader& operator=(const latest_reader&) = delete;
    /// False: all places of the link's latest groups are taken.
    [[nodiscard]] bool joined() const noexcept { return group_ != shm::none; }
    [[nodiscard]] u32 group() const noexcept { return group_; }

    /// Leases the newest frame that is newer than the last one; with `only` the frame of that number alone.
    /// Empty: none.
    [[nodiscard]] slot_ref acquire(u64 only = any_ring_sequence) noexcept;
    /// True: the frame was whole all the time. False: discard what was read. The lease was revoked meanwhile,
    /// or the header has changed under it (header_changed()).
    [[nodiscard]] bool release() noexcept;
    /// Of the last release(): the lease was held, and the header is not as it was sealed.
    [[nodiscard]] bool header_changed() const noexcept { return header_changed_; }
    [[nodiscard]] link_ref& link() noexcept { return link_; }

private:
    shm::control_block* control_;
    link_ref link_;
    u32 group_ = shm::none;
    u64 mine_ = 0;  ///< our group word
    slot_ref held_;
    u64 lease_ = 0;
    bool header_changed_ = false;
    u64 next_;  ///< only sequences from here on
};

/// Revokes leases of latest members that are older than latest_lease_ns. By anyone; the supervisor and idle
/// producers do. True when any was revoked.
bool revoke_stale_leases(shm::control_block& c, u32 link, u64 now) noexcept;

}  // namespace carousel::ring
