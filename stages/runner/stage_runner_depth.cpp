// The runner's depth: the work per frame is measured where its completion is detected, and the number of
// frames in flight is chosen where frames begin (depth_governor.hpp).
#include <algorithm>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "stages/runner/stage_runner.hpp"

namespace carousel::stages {
namespace {
constexpr u64 update_interval_ns = 250'000'000;

// Returns the work per frame of the slowest process in the stage's seats, because several instances of a
// stage share its frames. 0: unknown.
u64 work_of(const shm::control_block& c, const shm::stage_block& s) {
    u64 work = 0;
    for (u32 k = 0; k < s.seats && s.first_seat + k < shm::max_seats; ++k) {
        const u32 entry = ring::seat_word::of(ring::load(c.seat[s.first_seat + k].current)).entry;
        if (entry < shm::max_incarnations)
            work = std::max(work, c.entry[entry].work_ns.load(std::memory_order_relaxed));
    }
    return work;
}
}  // namespace

void stage_runner::measure(const frame_in_work& f, u64 wait_began) {
    const u64 now = now_ns();
    meter_.add(f.job.submitted_ns, wait_began, now);
    // From the time at which the device could begin the frame.
    const u64 span = now - std::min(now, std::max(f.job.submitted_ns, last_complete_ns_));
    last_complete_ns_ = now;
    if (!f.job.is_tombstone() && reach_.add(f.by_copy, span)) log::info("{}", reach_.report());
    if (!meter_.due(now)) return;
    const shm::block_open open;
    runtime_->entry().work_ns.store(meter_.read(now), std::memory_order_relaxed);
}

// Returns the work per frame, summed over all contexts that take turns, or otherwise of this process. 0:
// unknown for at least one of them.
u64 stage_runner::work_of_a_turn() const {
    const depth_rule& rule = runtime_->attached().depth;
    if (rule.sharing != device_sharing::turns)
        return runtime_->entry().work_ns.load(std::memory_order_relaxed);
    u64 sum = 0;
    for (const u32 stage : rule.turn_stages) {
        const u64 work =
            stage < shm::max_stages ? work_of(runtime_->control(), runtime_->control().stage[stage]) : 0;
        if (work == 0) return 0;
        sum += work;
    }
    return sum;
}

void stage_runner::update_turns() {
    const depth_rule& rule = runtime_->attached().depth;
    if (rule.token == shm::none) return;
    const u32 lanes = depth_.now().lanes;
    const u64 work_ns = runtime_->entry().work_ns.load(std::memory_order_relaxed);
    turn_.set(rule.turn_frames > 0 ? std::min(rule.turn_frames, lanes) : frames_of_a_turn(lanes, work_ns),
              work_ns);
}

void stage_runner::update_depth() {
    const u64 now = now_ns();
    if (now < next_update_ns_) return;
    const bool first = next_update_ns_ == 0;
    next_update_ns_ = now + update_interval_ns;
    const u32 lanes = depth_.now().lanes;
    update_turns();
    const bool another = depth_.update(depth_.chooses() ? work_of_a_turn() : 0) || first;
    telemetry::depth_view d = depth_.now();
    d.graphs = !frames_.empty() && frames_.front()->alike != nullptr;
    d.reach = reach_.state();
    {
        const shm::block_open open;
        runtime_->entry().depth.store(d.pack(), std::memory_order_relaxed);
    }
    if (!another) return;
    if (worker_.outputs() > 0) worker_.reach(d.window);
    if (d.lanes != lanes)
        log::info("{} frames in flight (before: {}; at most {}): {}", d.lanes, lanes, frames_.size(),
                  d.reason());
}

}  // namespace carousel::stages
