#include "telemetry/trace_ring.hpp"

#include <cstring>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"

namespace carousel::telemetry {
namespace {
constexpr u64 longest_piece_ns = 100 * ns_per_ms;  ///< longer waits are split, so that they are visible
                                                   ///< before they end
}

bool trace_writer::map(u64 now) noexcept {
    if (tried_ns_ != 0 && now - tried_ns_ < ns_per_s) return false;
    tried_ns_ = now;
    try {
        segment_.emplace(shm::trace_segment::attach(
            std::string(control_->run_id, strnlen(control_->run_id, sizeof control_->run_id)), true));
        ring_.store(segment_->ring(seat_), std::memory_order_release);
    } catch (const std::exception& e) {
        log::warning("{}: the trace lacks this stage", e.what());
    }
    return ring_.load(std::memory_order_relaxed) != nullptr;
}

void trace_writer::put(stamp s) noexcept {
    shm::trace_ring* ring = ring_.load(std::memory_order_acquire);
    if (ring == nullptr) return;
    s.epoch = epoch_;
    append(*ring, s);
}

void trace_writer::end_wait() noexcept {
    if (wait_from_ns_ != 0) put({stamp_kind::waited, 0, why_, false, 0, 0, wait_from_ns_, wait_until_ns_, 0});
    wait_from_ns_ = 0;
}

void trace_writer::waiting(wait_reason why, u64 from, u64 now) noexcept {
    if (wait_from_ns_ != 0 && (why != why_ || now - wait_from_ns_ > longest_piece_ns)) end_wait();
    if (wait_from_ns_ == 0) wait_from_ns_ = from;
    why_ = why;
    wait_until_ns_ = now;
}

void trace_writer::claimed(u64 ring_sequence, u8 lane, u64 claimed_ns, u64 born_ns, u64 capture_ns) noexcept {
    end_wait();
    put({stamp_kind::claimed, lane, wait_reason::input, false, 0, ring_sequence, claimed_ns, born_ns,
         capture_ns});
}

void trace_writer::submitted(u64 ring_sequence, u8 lane, bool is_tombstone, u64 process_ns,
                             u64 submitted_ns) noexcept {
    put({stamp_kind::submitted, lane, wait_reason::input, is_tombstone, 0, ring_sequence, process_ns,
         submitted_ns, 0});
}

void trace_writer::committed(u64 ring_sequence, u8 lane, u64 complete_ns, u64 committed_ns,
                             u64 finished_ns) noexcept {
    put({stamp_kind::committed, lane, wait_reason::input, false, 0, ring_sequence, complete_ns, committed_ns,
         finished_ns});
}

}  // namespace carousel::telemetry
