// Which clock runs and which process is late by it: every row of the table in clocks.hpp.
#include <array>

#include "core/clock.hpp"
#include "supervisor/policy/clocks.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

constexpr u64 now = 10'000 * ns_per_s, limit = 2 * ns_per_s;
constexpr u64 ago(f64 seconds) { return now - static_cast<u64>(seconds * 1e9); }

/// A process that is well and works on a frame.
process_view well() {
    process_view p;
    p.open = p.submitted = p.has_frame = true;
    p.frames_wait = true;
    p.frame_timeout_ns = limit;
    p.heartbeat_ns = ago(0.05);
    return p;
}

offence verdict_on(const process_view& p) { return judge(std::array{p}, now).front(); }

}  // namespace

TEST_CASE("a late first frame is reported with the key whose limit it exceeded") {
    process_view p = well();
    CHECK(describe(offence::processing, p) ==
          "process() of a frame takes longer than frame_timeout_ms = 2000");
    p.first_frame = true;
    p.frame_timeout_ns = 30 * ns_per_s;
    CHECK(describe(offence::processing, p) ==
          "process() of a frame takes longer than first_frame_timeout_ms = 30000");
}

TEST_CASE("each clock has its own limit, and one that doesn't run passes none") {
    CHECK(verdict_on(well()) == offence::none);
    struct row {
        u64 process_view::*clock;
        offence what;
    };
    const auto r = GENERATE(row{&process_view::processing_ns, offence::processing},
                            row{&process_view::device_ns, offence::device},
                            row{&process_view::finishing_ns, offence::finishing},
                            row{&process_view::heartbeat_ns, offence::heart});
    process_view p = well();
    p.*r.clock = ago(1.9);
    CHECK(verdict_on(p) == offence::none);
    p.*r.clock = ago(2.1);
    CHECK(verdict_on(p) == r.what);
    p.base_ns = ago(1.9);  // the supervisor was starved, or the run continues after `carousel cont`
    CHECK(verdict_on(p) == offence::none);
}

TEST_CASE("a time stamp in the future is not an age") {
    process_view p = well();
    p.processing_ns = p.device_ns = p.finishing_ns = p.heartbeat_ns = now + ns_per_s;
    CHECK(verdict_on(p) == offence::none);
}

TEST_CASE("only a running seat has deadlines: not a paused, starting, ending or down one") {
    process_view p = well();
    p.processing_ns = p.device_ns = p.finishing_ns = p.heartbeat_ns = ago(60);
    CHECK(verdict_on(p) != offence::none);
    for (const seat_state s : {seat_state::starting, seat_state::stopping, seat_state::stopped,
                               seat_state::backoff, seat_state::failed, seat_state::down, seat_state::done}) {
        p.state = s;
        INFO(name_of(s));
        CHECK(verdict_on(p) == offence::none);
    }
    p.state = seat_state::running;
    p.tool = true;
    CHECK(verdict_on(p) == offence::none);
}

TEST_CASE("a clock counts only while a job word of the process permits it") {
    process_view p = well();
    p.processing_ns = p.device_ns = p.finishing_ns = ago(60);
    p.open = p.submitted = p.has_frame = false;
    CHECK(verdict_on(p) == offence::none);
    p.submitted = p.has_frame = true;
    p.finishing_ns = 0;
    CHECK(verdict_on(p) == offence::device);  // what process() reports has no meaning without an OPEN word
    p.submitted = false;
    p.open = true;
    CHECK(verdict_on(p) == offence::processing);
}

TEST_CASE("frame_timeout_ms = 0 disables the deadline, but a stopped heartbeat is still found") {
    process_view p = well();
    p.frame_timeout_ns = 0;
    p.processing_ns = p.device_ns = p.finishing_ns = ago(3600);
    CHECK(verdict_on(p) == offence::none);
    p.heartbeat_ns = ago(2.1);
    CHECK(verdict_on(p) == offence::heart);
}

TEST_CASE("a full disk stops every clock but the heart") {
    process_view p = well();
    p.processing_ns = p.device_ns = p.finishing_ns = p.pause_ns = ago(3600);
    CHECK(verdict_on(p) == offence::none);
    p.heartbeat_ns = ago(2.1);
    CHECK(verdict_on(p) == offence::heart);
}

TEST_CASE("a process without a heartbeat is tolerated while no process waits for it") {
    process_view p = well();
    p.open = p.submitted = p.has_frame = p.frames_wait = false;
    p.heartbeat_ns = ago(60);
    CHECK(verdict_on(p) == offence::none);
    p.frames_wait = true;
    CHECK(verdict_on(p) == offence::heart);
}

TEST_CASE("a stopped process is late by its heart, never by a clock that runs on without it") {
    process_view p = well();
    p.stopped = true;
    p.processing_ns = p.device_ns = p.finishing_ns = ago(60);
    p.heartbeat_ns = ago(1.9);
    CHECK(verdict_on(p) == offence::none);
    p.heartbeat_ns = ago(2.1);
    CHECK(verdict_on(p) == offence::heart);
}

TEST_CASE("of hanging stages the oldest on each GPU is late, on the CPU each one") {
    const auto on_device = [](u32 device, f64 seconds) {
        process_view p = well();
        p.device = device;
        p.device_ns = ago(seconds);
        return p;
    };
    process_view host = well(), stopped = well(), finishing = well();
    host.processing_ns = ago(2.5);
    host.device = 0;
    stopped.heartbeat_ns = ago(9);
    stopped.stopped = true;
    finishing.finishing_ns = ago(2.2);
    const std::vector<process_view> all{host,      on_device(0, 3),           on_device(0, 4),
                                        stopped,   on_device(0, 2.1),         on_device(7, 2.1),
                                        finishing, on_device(shm::none, 2.1), on_device(shm::none, 5)};
    using o = offence;
    CHECK(judge(all, now) == std::vector<o>{o::processing, o::none, o::device, o::heart, o::none, o::device,
                                            o::finishing, o::device, o::device});
}

TEST_CASE("of frames whose device clocks restarted together, the oldest is the offender") {
    process_view victim = well(), offender = well();
    victim.device = offender.device = 0;
    victim.device_base_ns = offender.device_base_ns = ago(2.5);
    offender.device_ns = ago(6);
    victim.device_ns = ago(5);
    CHECK(judge(std::array{victim, offender}, now) == std::vector<offence>{offence::none, offence::device});
    offender.device_base_ns = victim.device_base_ns = ago(1.5);
    CHECK(judge(std::array{victim, offender}, now) == std::vector<offence>{offence::none, offence::none});
}
