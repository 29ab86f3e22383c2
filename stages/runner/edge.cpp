// Stages at the edge of a run: a source whose frames come from outside is asked whether one is there before
// anything is begun, and a sink whose frames go to another host may wait for it. Neither is a hang.
#include "stages/runner/guarded.hpp"
#include "stages/runner/outside_hold.hpp"
#include "stages/runner/stage_runner.hpp"

namespace carousel::stages {

// On the thread of process(). begin() chooses anew behind this; it can't come to a lower number, because
// ready() is told how far all numbers are done, and there is one process on this seat.
bool stage_runner::ready(u64 sequence, u32 in_flight) {
    const bool source = worker_.stage().source != shm::none;
    bool there = false;
    guarded("ready", sequence, [&] { there = stage_->ready(sequence, source ? worker_.done_below() : 0); });
    wait_for_link(source && !there && in_flight == 0);  // frames in flight have clocks
    return there;
}

void stage_runner::wait_for_link(bool waits) {
    if (waits == waits_for_link_) return;
    waits_for_link_ = waits;
    waits ? outside_.begin(shm::hold_reason::link) : outside_.end(shm::hold_reason::link);
}

void frame_in_work::wait_for_link(bool waits) {
    if (waits == waits_for_link || outside == nullptr) return;
    waits_for_link = waits;
    waits ? outside->begin(shm::hold_reason::link) : outside->end(shm::hold_reason::link);
}

}  // namespace carousel::stages
