#pragma once
// A member of a `latest` group: a viewer, or a display that may skip frames. A member joins and leaves at any
// time, leases only the newest READY frame (if that frame is newer than the frame that the member leased
// before), and never blocks a producer: its lease is revocable after latest_lease_ms.
//
// Sync point: a lease is a CAS on the group word. sweep() closes that word before it frees the slot, so a
// lease either pins the slot or fails. After a revocation (LEASED -> SKIPPED by any process) the member's own
// LEASED -> DONE fails, and the data that it read is discarded. Crash: the lease of a dead member is revoked
// like the lease of a slow member; the supervisor frees the dead member's place in the group.

#include <functional>

#include "ring/link.hpp"

namespace carousel::ring {

inline constexpr u64 any_ring_sequence = ~u64{0};

class latest_reader {
public:
    /// Joins `link` as incarnation `entry` (shm::max_incarnations or more: a tap, which has no entry). Check
    /// joined(). Only frames from sequence `from` on are leased. Takes the free place that was taken least
    /// often: in a place that was left recently, the previous member may just have taken the newest frame.
    latest_reader(shm::control_block& c, u32 link, u32 entry, u64 from = 0) noexcept;
    ~latest_reader();
    latest_reader(const latest_reader&) = delete;
    latest_reader& operator=(const latest_reader&) = delete;
    /// Returns false if all places of the link's latest groups are taken.
    [[nodiscard]] bool joined() const noexcept { return group_ != shm::none; }
    [[nodiscard]] u32 group() const noexcept { return group_; }

    /// Leases the newest frame, if it is newer than the frame that this member leased before. If `only` is
    /// given, leases no frame except the one with that number. Empty if there is none.
    [[nodiscard]] slot_ref acquire(u64 only = any_ring_sequence) noexcept;
    /// Releases the lease; returns true if the frame was intact the whole time. If release() returns false,
    /// the data that was read must be discarded. In that case the lease was revoked, or the header has
    /// changed during the lease (header_changed()).
    [[nodiscard]] bool release() noexcept;
    /// True if, at the last release(), the lease was still held but the header did not match its seal.
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
    u64 next_;  ///< the lowest sequence that may still be leased
};

/// Maps the start time of a lease to the time from which the lease's age is counted: the start time plus the
/// time during which the run, or the calling process, was stopped. Must not throw.
using counted_from = std::function<u64(u64 since_ns)>;

/// Revokes leases of latest members that are older than latest_lease_ns. Any process may call this function;
/// the supervisor and idle producers call it. Returns true if a lease was revoked. Without `from`, the age is
/// all time since the start of the lease.
bool revoke_stale_leases(shm::control_block& c, u32 link, u64 now, const counted_from& from = {}) noexcept;

}  // namespace carousel::ring
