// Stages at the edge of a run. A source whose frames come from outside is asked whether a frame is available
// before anything begins, and a sink whose frames go to another host may wait for that host. Neither is a
// hang; nor is the pause of a source with a configured rate.
#include <algorithm>
#include <chrono>
#include <thread>

#include "core/clock.hpp"
#include "shm/doorbell.hpp"
#include "stages/runner/external_pause.hpp"
#include "stages/runner/guarded.hpp"
#include "stages/runner/stage_runner.hpp"

namespace carousel::stages {

// Runs on the thread of process(). begin() chooses the sequence again after this; it cannot choose a lower
// one, because ready() receives the bound below which all sequences are done, and this seat has only one
// process.
bool stage_runner::ready(u64 ring_sequence, u32 in_flight) {
    const bool source = worker_.stage().source != shm::none;
    bool there = false;
    guarded("ready", ring_sequence,
            [&] { there = stage_->ready(ring_sequence, source ? worker_.done_below() : 0); });
    wait_for_link(source && !there && in_flight == 0);  // frames in flight have their own clocks
    return there;
}

void stage_runner::wait_for_link(bool waits) {
    if (waits == waits_for_link_) return;
    waits_for_link_ = waits;
    waits ? outside_.begin(shm::pause_reason::link) : outside_.end(shm::pause_reason::link);
}

void frame_in_work::wait_for_link(bool waits) {
    if (waits == waits_for_link || outside == nullptr) return;
    waits_for_link = waits;
    waits ? outside->begin(shm::pause_reason::link) : outside->end(shm::pause_reason::link);
}

// A source with a configured rate spaces its claims. The time of the next claim is in the control block, so
// that a successor keeps the rhythm. A source that is late catches up by one frame at most.
bool stage_runner::due(u32 seen) {
    shm::control_block& c = runtime_->control();
    if (c.fps <= 0 || worker_.stage().source == shm::none) return true;
    const u64 next = c.next_source_ns.load(std::memory_order_relaxed), now = now_ns();
    if (next <= now) return true;
    const u64 rest = std::min(next - now, shm::max_sleep_ns);
    if (sampled_inputs_)  // their frames ring the doorbell
        shm::wait(worker_.stage().doorbell, seen, rest);
    else
        std::this_thread::sleep_for(std::chrono::nanoseconds(rest));
    const u64 woken = now_ns();
    const shm::block_open open;
    // the clock is a source's input
    worker_.stage().counters.wait_input_ns.fetch_add(woken - now, std::memory_order_relaxed);
    return woken >= next;
}

void stage_runner::paced(u64 claimed_ns) {
    shm::control_block& c = runtime_->control();
    if (c.fps <= 0 || worker_.stage().source == shm::none) return;
    const u64 step = static_cast<u64>(1e9 / c.fps);
    const u64 planned = c.next_source_ns.load(std::memory_order_relaxed) + step;
    const shm::block_open open;
    c.next_source_ns.store(std::max(planned, claimed_ns), std::memory_order_relaxed);
}

}  // namespace carousel::stages
