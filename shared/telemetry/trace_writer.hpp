#pragma once
// A stage's side of `carousel trace`: records timestamps of each frame in its seat's ring while the control
// block requests them. While tracing is off, it costs one relaxed load per frame. One object per process;
// waiting(), claimed() and submitted() are called from its main thread, committed() from any thread.

#include <atomic>
#include <optional>
#include <string>

#include "shm/segment.hpp"
#include "telemetry/trace_ring.hpp"

namespace carousel::telemetry {

class trace_writer {
public:
    trace_writer(const shm::control_block& c, u32 seat, u32 epoch) noexcept
        : control_(&c), seat_(seat), epoch_(epoch) {}

    /// Called when a standby has taken its seat. Allowed only before the first frame.
    void set_epoch(u32 epoch) noexcept { epoch_ = epoch; }
    /// True if a trace is requested at `now` and its ring is mapped (the first call maps it). Main thread.
    [[nodiscard]] bool on(u64 now) noexcept {
#ifdef CAROUSEL_WITHOUT_TRACE  // tests/bench/trace_cost.py compares with a build without tracing
        (void)now;
        return false;
#endif
        return now < control_->trace_until_ns.load(std::memory_order_relaxed) &&
               (ring_.load(std::memory_order_relaxed) != nullptr || map(now));
    }
    /// Begins or continues a wait; a wait whose reason changes, or that lasts long, is written in several
    /// records.
    void waiting(wait_reason why, u64 from, u64 now) noexcept;
    /// Each of these may be called only after on() returned true for this frame.
    void claimed(u64 ring_sequence, u8 lane, u64 claimed_ns, u64 born_ns, u64 capture_ns) noexcept;
    void submitted(u64 ring_sequence, u8 lane, bool is_tombstone, u64 process_ns, u64 submitted_ns) noexcept;
    void committed(u64 ring_sequence, u8 lane, u64 complete_ns, u64 committed_ns, u64 finished_ns) noexcept;

private:
    bool map(u64 now) noexcept;
    void put(stamp s) noexcept;
    void end_wait() noexcept;

    const shm::control_block* control_;
    u32 seat_, epoch_;
    std::optional<shm::trace_segment> segment_;
    std::atomic<shm::trace_ring*> ring_{nullptr};
    u64 tried_ns_ = 0;  ///< time of the last attempt to map, so that a failed attempt is not repeated at
                        ///< every frame
    wait_reason why_ = wait_reason::input;
    u64 wait_from_ns_ = 0, wait_until_ns_ = 0;  ///< 0: no wait is open
};

}  // namespace carousel::telemetry
