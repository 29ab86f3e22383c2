// A source whose stream ends: what frame::end_stream() does, and how the frame that does not exist is given
// back (E1 and E3 of ring/PROTOCOL.md; E2 is the supervisor's).
#include <fmt/format.h>

#include <stdexcept>

#include "core/crash_point.hpp"
#include "core/log.hpp"
#include "shm/doorbell.hpp"
#include "stages/runner/guarded.hpp"
#include "stages/runner/running_clock.hpp"
#include "stages/runner/stage_runner.hpp"

namespace carousel::stages {

void frame_in_work::end_stream() {
    const shm::stage_block& s = runtime_->stage_block();
    const auto refuse = [&](const char* why) {
        throw std::logic_error(
            fmt::format("stage {} calls end_stream() for frame {}, but {}", s.name, job.ring_sequence, why));
    };
    if (s.source == shm::none)
        refuse("it reads other stages: only a stage without inputs can end the stream");
    if ((s.flags & shm::stage_flag::ends) == 0)
        refuse(
            "its configure() does not declare it: set description::ends, which the downstream stages are "
            "checked against");
    if (!in_process) refuse("not inside process(): the frame is already complete");
    ended = true;
}

// The job stays OPEN, and nothing else begins, until END is known; then the frame is given back and frames
// below END continue. This loop waits for others: the supervisor's next check, or this stage's frames in
// flight, which have their own clocks.
void stage_runner::end_stream(frame_in_work& f) {
    log::info("the stream ends before frame {}", f.job.ring_sequence);
    turn_.on_idle();
    for (;;) {
        const u32 seen = shm::ticket(worker_.stage().doorbell);
        const ring::outcome result = worker_.end_stream(f.job);
        if (result == ring::outcome::revoked) die(exit_code::revoked);
        if (result == ring::outcome::ok && in_flight() == 1) break;
        wait_for_change(seen, telemetry::wait_reason::own_work, shm::max_sleep_ns);
    }
    {
        // the completion thread has nothing to wait for
        const running_clock clock(runtime_->entry().device_since_ns);
        guarded("the device's work", f.job.ring_sequence, [&] { runtime_->queue().drain(); });
    }
    crash_here(crash_point::end_known);
    if (!worker_.give_back(f.job)) die(exit_code::revoked);
    released(f);
}

}  // namespace carousel::stages
