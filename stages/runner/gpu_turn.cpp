#include "stages/runner/gpu_turn.hpp"

#include <algorithm>

#include "shm/block_guard.hpp"

namespace carousel::stages {
namespace {

/// The time from passing a turn on until the next stage's work is queued: a wake-up and a launch.
constexpr u64 hand_over_ns = 60'000;
/// The time that the host takes to queue a frame. It contains a margin, so that a turn does not count as late
/// while its frames are still being queued.
constexpr u64 queueing_ns = 100'000;

}  // namespace

u32 frames_of_a_turn(u32 lanes, u64 work_ns) noexcept {
    if (work_ns == 0) return lanes;
    const u64 enough = (fullest_turn_ns + work_ns - 1) / work_ns;
    return static_cast<u32>(std::min<u64>(lanes, enough));
}

gpu_turn::gpu_turn(shm::control_block& c, u32 token, u32 seat, u64 (*now)() noexcept) : now_(now) {
    if (token >= shm::max_turns || seat >= shm::max_seats) return;
    turn_ = std::make_unique<ring::turn>(c, token, seat);
    counters_ = &c.stage[std::min(c.seat[seat].stage, shm::max_stages - 1)].counters;
}

void gpu_turn::set(u32 frames, u64 work_ns) {
    if (!turn_) return;
    const std::lock_guard lock(mutex_);
    const bool ends = frames == 0 && frames_ != 0;
    frames_ = frames;
    const u64 two_turns_us = 2 * u64{frames} * (work_ns + queueing_ns) / 1000;
    limit_us_ =
        work_ns == 0
            ? ring::longest_turn_us
            : static_cast<u32>(std::clamp<u64>(two_turns_us, ring::least_turn_us, ring::longest_turn_us));
    early_ = work_ns == 0
                 ? 0
                 : static_cast<u32>(std::min<u64>((hand_over_ns + work_ns - 1) / work_ns, frames / 2));
    if (!ends) return;
    if (held_) turn_->pass_on(now_());
    held_ = false;
    turn_->cancel_wait();
}

bool gpu_turn::take(u64 now) {
    const ring::turn::taking got = turn_->take(now, limit_us_);
    if (got == ring::turn::taking::no) return false;
    const shm::block_open open;
    counters_->turns.fetch_add(1, std::memory_order_relaxed);
    if (got == ring::turn::taking::from_late) counters_->late_turns.fetch_add(1, std::memory_order_relaxed);
    held_ = true;
    left_ = frames_;
    return true;
}

bool gpu_turn::may_begin() {
    if (!turn_) return true;
    const std::lock_guard lock(mutex_);
    if (frames_ == 0 || (held_ && left_ > 0)) return true;
    const u64 now = now_();
    if (!held_) return take(now);
    // Here the turn is closed, but the last frames of the turn are not complete yet. This stage renews the
    // turn if no other stage waits for it.
    if (turn_->has_waiters()) return false;
    held_ = turn_->renew(now, limit_us_);
    if (!held_) return take(now);
    left_ = frames_;
    return true;
}

void gpu_turn::submitted() {
    if (!turn_) return;
    const std::lock_guard lock(mutex_);
    ++outstanding_;
    if (left_ > 0) --left_;
    if (left_ == 0) pass_on_if_done();
}

void gpu_turn::close() {
    left_ = 0;
    pass_on_if_done();
}

void gpu_turn::on_idle() {
    if (!turn_) return;
    const std::lock_guard lock(mutex_);
    if (held_) close();
    if (frames_ != 0 && !held_) turn_->cancel_wait();
}

void gpu_turn::pass_on_if_done() {
    if (!held_ || left_ > 0 || outstanding_ > early_) return;
    turn_->pass_on(now_());
    held_ = false;
}

void gpu_turn::complete() {
    if (!turn_) return;
    const std::lock_guard lock(mutex_);
    if (outstanding_ > 0) --outstanding_;
    pass_on_if_done();
}

u64 gpu_turn::patience_ns() const { return turn_ ? turn_->patience_ns(now_()) : 0; }

}  // namespace carousel::stages
