#pragma once
// The content of a record of the trace's rings, and the functions that write and read it (shm/trace_block.hpp
// has the reasons for this design).
// A frame leaves three records in a stage, each written before the step that it records becomes visible to
// other processes:
//   claimed    {sequence, claimed, born, captured}        begin() was successful; captured 0: not given
//   submitted  {sequence, process began, submitted}       before the job word is SUBMITTED: a frame that
//                                                         commits has this record
//   committed  {sequence, complete, committed, finished}  by the owner; an owner that dies here has committed
//                                                         without this record
//   waited     {why, from, until}                         the main thread's time without a frame
// Times are CLOCK_MONOTONIC nanoseconds.

#include <atomic>
#include <optional>
#include <string>

#include "shm/segment.hpp"
#include "shm/trace_block.hpp"

namespace carousel::telemetry {

enum class stamp_kind : u8 { none, claimed, submitted, committed, waited };
enum class wait_reason : u8 {
    input,
    output,
    own_work,  ///< all lanes of the stage are in use
    turn,      ///< another stage has its turn on the GPU
};

struct stamp {
    stamp_kind kind = stamp_kind::none;
    u8 lane = 0;  ///< lane of the runner; two frames in flight have different lanes
    wait_reason why = wait_reason::input;
    bool is_tombstone = false;
    u32 epoch = 0;  ///< 24 bits
    u64 ring_sequence = 0;
    u64 a = 0, b = 0, c = 0;  ///< the values listed above, in this order
};

[[nodiscard]] inline u64 trace_check(u64 number, const u64 (&field)[shm::trace_words]) noexcept {
    u64 h = number * 0x9E37'79B9'7F4A'7C15ULL + 1;
    for (const u64 f : field) {
        h = (h ^ f) * 0xFF51'AFD7'ED55'8CCDULL;
        h ^= h >> 32U;
    }
    return h;
}

/// Appends a record. Any thread; never blocks. A crash at any store leaves a record that every reader
/// rejects.
inline void append(shm::trace_ring& r, const stamp& s) noexcept {
    const u64 field[shm::trace_words] = {static_cast<u64>(s.kind) | u64{s.lane} << 8U |
                                             static_cast<u64>(s.why) << 16U | u64{s.is_tombstone} << 24U |
                                             u64{s.epoch} << 32U,
                                         s.ring_sequence,
                                         s.a,
                                         s.b,
                                         s.c,
                                         0,
                                         0};
    const u64 number = r.head.fetch_add(1, std::memory_order_relaxed);
    shm::trace_record& at = r.record[number % shm::trace_records];
    for (u32 k = 0; k < shm::trace_words; ++k) at.field[k].store(field[k], std::memory_order_relaxed);
    at.check.store(trace_check(number, field), std::memory_order_release);
}

/// Reads record `number`. Returns false if the record is incomplete (being written, left by a dead writer, or
/// overwritten).
[[nodiscard]] inline bool read(const shm::trace_ring& r, u64 number, stamp& out) noexcept {
    const shm::trace_record& at = r.record[number % shm::trace_records];
    const u64 check = at.check.load(std::memory_order_acquire);
    u64 field[shm::trace_words];
    for (u32 k = 0; k < shm::trace_words; ++k) field[k] = at.field[k].load(std::memory_order_relaxed);
    if (check != trace_check(number, field)) return false;
    const u64 kind = field[0] & 0xFFU, why = field[0] >> 16U & 0xFFU;
    if (kind > static_cast<u64>(stamp_kind::waited) || why > static_cast<u64>(wait_reason::turn))
        return false;
    out = {static_cast<stamp_kind>(kind),
           static_cast<u8>(field[0] >> 8U),
           static_cast<wait_reason>(why),
           (field[0] >> 24U & 1U) != 0,
           static_cast<u32>(field[0] >> 32U),
           field[1],
           field[2],
           field[3],
           field[4]};
    return true;
}

// A stage's side of `carousel trace`: records timestamps of each frame in its seat's ring while the control
// block requests them. While tracing is off, it costs one relaxed load per frame. One object per process;
// waiting(), claimed() and submitted() are called from its main thread, committed() from any thread.

class trace_writer {
public:
    trace_writer(const shm::control_block& c, u32 seat, u32 epoch) noexcept
        : control_(&c), seat_(seat), epoch_(epoch) {}

    /// Called when a standby has taken its seat. Allowed only before the first frame.
    void set_epoch(u32 epoch) noexcept { epoch_ = epoch; }
    /// True if a trace is requested at `now` and its ring is mapped (the first call maps it). Main thread.
    [[nodiscard]] bool on(u64 now) noexcept {
#ifdef CAROUSEL_WITHOUT_TRACE  // set in the build that tests/bench/trace_cost.py compares with
        (void)now;
        return false;
#endif
        return now < control_->trace_until_ns.load(std::memory_order_relaxed) &&
               (ring_.load(std::memory_order_relaxed) != nullptr || map(now));
    }
    /// Begins or continues a wait; a wait whose reason changes, or that lasts long, is written in several
    /// records.
    void waiting(wait_reason why, u64 from, u64 now) noexcept;
    /// The following functions may be called only after on() returned true for this frame.
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
    u64 wait_from_ns_ = 0, wait_until_ns_ = 0;  ///< 0: no wait has begun
};

}  // namespace carousel::telemetry
