// Controls: the same kind of runs as in the other tests here, with a deliberate fault. They show that the
// counters detect errors.
#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "control/mapped_ring.hpp"
#include "core/errors.hpp"
#include "device/cpu/memfd.hpp"
#include "ring/words.hpp"
#include "shm/process_id.hpp"
#include "shm/segment.hpp"
#include "tests/crash/crash_plan.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::string fanned_out(const std::string& name) {
    return picture_pipeline(name, "fps = 300\nlatest_lease_ms = 100\nframe_timeout_ms = 60000\n") +
           R"([[stage]]
name = "peek"
run = "carousel-display"
inputs = ["fragment"]
group = "latest"
out = ""
)";
}

// A sink that has a frame in progress at all times: every kill costs the bugged supervisor at least one.
const std::vector<std::string> slow_sink = {"--frames", "300", "--set", "display.delay_ms=10"};

}  // namespace

TEST_CASE("control: a supervisor that drops the frames of the dead is caught by the ledger") {
    run_fixture run("carousel-bug-lose-lease");
    run.start(run.pipeline("drops", picture_pipeline("drops")), slow_sink);
    REQUIRE(run.wait_running());
    for (int k = 0; k < 40 && run.running(); ++k) {
        run.hit("display", SIGKILL);
        sleep_s(0.05);
    }
    CHECK(run.wait(60) == 1);
    INFO(run.log());
    CHECK(run.report()["lost"].get<u64>() > 0);
}

TEST_CASE("control: the same kills with the real supervisor lose nothing") {
    run_fixture run;
    run.start(run.pipeline("keeps", picture_pipeline("keeps")), slow_sink);
    REQUIRE(run.wait_running());
    for (int k = 0; k < 40 && run.running(); ++k) {
        run.hit("display", SIGKILL);
        sleep_s(0.05);
    }
    CHECK(run.wait(60) == 0);
    CHECK(run.report()["lost"] == 0);
}

namespace {

/// The real display is killed 20 times at a point; returns what its ledger makes of it.
json display_dies_at(run_fixture& run, crash_point point, int expected) {
    crash_plan plan(run.path("plan"));
    for (int k = 0; k < 20; ++k) plan.add("display", point, "kill", 3);
    plan.write();
    run.start(run.pipeline("dies", picture_pipeline("dies")),
              {"--frames", "200", "--set", "display.delay_ms=2"}, {plan.environment()});
    CHECK(run.wait(60) == expected);
    INFO(run.log());
    CHECK(plan.pending_lines() == "");
    return run.report();
}

}  // namespace

TEST_CASE("the display, killed 20 times around its commit, loses and repeats nothing") {
    const crash_point point = GENERATE(crash_point::host_work_done, crash_point::job_committed);
    CAPTURE(std::string(name_of(point)));
    run_fixture run;
    const json r = display_dies_at(run, point, 0), sink = r["sinks"][0];
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    CHECK(sink["records"] == 200);
    CHECK(sink["unmarked"] == 0);
    u64 named = 0;  // in the records of the deaths
    for (const json& death : r["recoveries"]) named += death.value("committed", json::array()).size();
    CHECK(sink["marked_by_supervisor"] == named);
    CHECK(named == (point == crash_point::job_committed ? 20 : 0));
}

TEST_CASE("control: a supervisor that drops dead processes' frames is caught around a commit") {
    const crash_point point = GENERATE(crash_point::host_work_done, crash_point::job_committed);
    CAPTURE(std::string(name_of(point)));
    run_fixture run("carousel-bug-lose-lease");
    const json r = display_dies_at(run, point, 1);
    CHECK(r["lost"].get<u64>() > 0);
    if (point == crash_point::host_work_done)
        CHECK(r["sinks"][0]["unmarked"].get<u64>() > 0);  // recorded, and still not certified
}

TEST_CASE("control: a supervisor that reverts commits is caught by the ledger") {
    run_fixture run("carousel-bug-abort-committed");
    const json r = display_dies_at(run, crash_point::job_committed, 1);
    CHECK(r["repeated"].get<u64>() == 20);
    CHECK(r["lost"] == 0);
}

TEST_CASE("control: a status word that changes under a lease is counted as torn") {
    run_fixture run;
    run.start(run.pipeline("tears", picture_pipeline("tears")), {"--frames", "60"},
              {"CAROUSEL_TEST_TEAR=20"});
    CHECK(run.wait(60) == 1);
    INFO(run.log());
    CHECK(run.report()["torn"].get<u64>() > 0);
    CHECK(run.report()["lost"] == 0);
    CHECK_THAT(run.log(), contains("frame 20 is torn: its status word in the ring geometry, which geometry "
                                   "fills, changed under its lease"));
    CHECK_THAT(run.log(), contains("its inputs are unguarded: CAROUSEL_TEST_TEAR writes to them"));
}

TEST_CASE("control: a latest reader counts a torn frame and names its ring and producer") {
    run_fixture run;
    run.start(run.pipeline("late", fanned_out("late")));
    REQUIRE(run.wait_running());
    std::string out;
    REQUIRE(run.command({"stop", "peek", "-p", "late"}, out) == 0);
    const shm::segment seen = shm::segment::observe(run.run_id());
    const shm::link_block& link = seen.block().link[seen.block().stage[2].output_link[0]];
    // A frame that its last reader is done with can't be read: the newest one waits for its display.
    REQUIRE(run.command({"stop", "display", "-p", "late"}, out) == 0);
    u64 last = 0;
    REQUIRE(run.wait_until([&] {  // the ring is full: no slot is filled any more
        sleep_s(0.2);
        const u64 now = ring::load(seen.block().stage[2].counters.frames);
        return std::exchange(last, now) == now;
    }));
    const run::mapped_ring mapped =
        run::map_ring(seen.block(), run.path("runtime") + "/carousel/late/control.sock", "fragment");
    const device::memfd_mapping memory(mapped.memory, device::access::write);
    for (u32 k = 0; k < link.slots; ++k)
        reinterpret_cast<device::status_word*>(memory.slot(k, link.slot_bytes))->ring_sequence ^= u64{1}
                                                                                                  << 40U;
    CHECK(run.command({"cont", "peek", "-p", "late"}, out) == 0);
    CHECK(run.wait_until([&] { return run.log().find("is torn") != std::string::npos; }));
    CHECK_THAT(run.log(),
               contains("peek ") && contains(" is torn: its status word in the ring fragment, which "
                                             "fragment fills, changed under its lease"));
    CHECK(run.command({"cont", "display", "-p", "late"}, out) == 0);
    run.signal(SIGINT);
    CHECK(run.wait(60) == exit_code::stage_failed);
    INFO(run.log());
    CHECK(run.report()["torn"] > 0);
}

TEST_CASE("a latest reader stopped with a lease blocks no stage, and its lease is revoked") {
    run_fixture run;
    run.start(run.pipeline("peeks", fanned_out("peeks")), {}, {"CAROUSEL_TEST_HOLD_LEASE=30"});
    REQUIRE(run.wait_running());
    REQUIRE(run.wait_until([&] { return shm::is_stopped(run.pid_of("peek")); }));
    const shm::segment seen = shm::segment::observe(run.run_id());
    const shm::link_block& link = seen.block().link[seen.block().stage[2].output_link[0]];
    // Nothing else returns the lease meanwhile: the run has no end, and peek is not replaced within a minute.
    CHECK(run.wait_until(
        [&] {
            u32 leased = 0;
            for (u32 k = 0; k < link.slots; ++k)
                for (u32 g = shm::max_blocking; g < shm::max_groups; ++g)
                    leased +=
                        ring::lease_word::of(ring::load(link.group[k][g])).state == ring::lease_state::leased
                            ? 1
                            : 0;
            return leased == 0;
        },
        10));
    const u64 tail = ring::load(link.tail);
    CHECK(run.wait_until([&] { return ring::load(link.tail) >= tail + u64{3} * link.slots; }, 10));
    CHECK(shm::is_stopped(run.pid_of("peek")));
    run.signal(SIGINT);
    CHECK(run.wait(40) == 0);
    const json r = run.report();
    INFO(run.log());
    CHECK(r["lost"] == 0);
    CHECK(r["torn"] == 0);
}
