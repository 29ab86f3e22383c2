#pragma once
// Collects the records that the stages write for `carousel trace` and joins them to attempts. An attempt is
// the work of one process of a stage on one frame. poll() must be called before a ring has wrapped (most of a
// second at 2,000 frames/s); missed records are counted.
//
// Threading: one thread per object, in any process of the user, on read-only mappings. A damaged block yields
// wrong timestamps, never an out-of-bounds access.

#include <unordered_map>
#include <vector>

#include "shm/segment.hpp"
#include "telemetry/trace_ring.hpp"

namespace carousel::telemetry {

struct attempt {
    u64 ring_sequence = 0;
    u32 seat = 0, epoch = 0;
    u8 lane = 0;
    bool is_tombstone = false;
    u64 claimed_ns = 0, born_ns = 0, capture_ns = 0, process_ns = 0, submitted_ns = 0, complete_ns = 0,
        committed_ns = 0,
        finished_ns = 0;  ///< 0: not reached
};
struct idle_time {
    u32 seat = 0, epoch = 0;
    wait_reason why = wait_reason::input;
    u64 from_ns = 0, until_ns = 0;
};

class trace_reader {
public:
    /// Records older than `begin_ns` are ignored.
    trace_reader(const shm::trace_segment& s, u64 begin_ns);
    void poll();

    [[nodiscard]] const std::vector<attempt>& attempts() const noexcept {
        return attempts_;
    }  ///< in unspecified order
    [[nodiscard]] const std::vector<idle_time>& waits() const noexcept { return waits_; }
    [[nodiscard]] u64 overwritten() const noexcept {
        return overwritten_;
    }                                      ///< records overwritten before they were read
    [[nodiscard]] u64 unfinished() const;  ///< records that a dying writer left half written

private:
    struct cursor {
        const shm::trace_ring* ring = nullptr;
        u64 next = 0;
        /// numbers of records that were allocated, but were incomplete at the last poll
        std::vector<u64> pending;
        u64 unreadable = 0;
        std::unordered_map<u64, std::size_t> known;  ///< {sequence, epoch} -> attempts_
    };
    void take(u32 seat, cursor& at, const stamp& s);

    u64 begin_ns_;
    std::vector<cursor> rings_;
    std::vector<attempt> attempts_;
    std::vector<idle_time> waits_;
    u64 overwritten_ = 0;
};

}  // namespace carousel::telemetry
