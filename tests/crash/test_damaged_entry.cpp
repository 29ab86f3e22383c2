// A bit of the control block that flips when it is not repaired any more, or not yet: an entry while no
// supervisor runs, tails when all is delivered.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "ring/words.hpp"
#include "shm/segment.hpp"
#include "tests/crash/crash_plan.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

TEST_CASE("an entry damaged without a supervisor is reported by the next one, and its process runs on") {
    const unsigned bit = GENERATE(1U, 17U, 44U, 64U);  // of its state, its epoch, its pid; of its start time
    CAPTURE(bit);
    run_fixture run;
    const std::string file = run.pipeline(
        "nameless", number_pipeline("nameless", "fps = 400\nsupervisor_grace_s = 20\n", "work_ms = 2\n"));
    const std::vector<std::string> to_end{"--frames", "1200"};
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    const i32 numbers = run.pid_of("numbers"), middle = run.pid_of("middle"), sink = run.pid_of("sink");
    const std::string id = run.ask({{"type", "ps"}})["pipeline"]["run_id"];
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    u32 damaged = 0;
    {
        shm::segment s = shm::segment::attach(id);
        for (shm::incarnation& e : s.block().entry) {
            if (ring::entry_word::of(ring::load(e.identity)).pid != static_cast<u32>(middle)) continue;
            bit < 64 ? e.identity.fetch_xor(u64{1} << bit) : e.start_time.fetch_xor(u64{1} << 3U);
            ++damaged;
        }
    }
    REQUIRE(damaged == 1);
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    CHECK(run.pid_of("numbers") == numbers);
    CHECK(run.pid_of("middle") == middle);
    CHECK(run.pid_of("sink") == sink);
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == 1200);
    CHECK(r["restarts"] == 0);
    CHECK(r["rebuilds"] == 0);
    CHECK_THAT(run.log(), contains(bit < 64 ? fmt::format("repaired, it belongs to middle (pid {})", middle)
                                            : "(middle): start_time was damaged while no supervisor ran"));
    CHECK(run.leftovers() == "");
}

TEST_CASE("bit flips in tails after the last delivery do not change how a run ends") {
    constexpr u64 frames = 200;
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("sink", crash_point::leaving, "stop", 1);  // the run is done, and waits for this process
    plan.write();
    run.start(run.pipeline("late", number_pipeline("late", "fps = 400\n", "")),
              {"--frames", std::to_string(frames)}, {plan.environment()});
    REQUIRE(run.wait_running());
    const json first = run.ask({{"type", "ps"}});
    shm::segment s = shm::segment::attach(first["pipeline"]["run_id"]);
    shm::control_block& c = s.block();
    REQUIRE(run.wait_until([&] { return run.ask({{"type", "ps"}})["pipeline"]["state"] == "done"; }));
    std::atomic<bool> over{false};
    u32 flips = 0;
    std::thread flipping([&] {
        while (!over)
            for (u32 k = 0; k < c.links; ++k)
                if (shm::intact(c.link[k].tail.raw().load())) c.link[k].tail.raw().fetch_xor(1), ++flips;
    });
    ::kill(run.pid_of("sink"), SIGCONT);
    const int code = run.wait();
    over = true;
    flipping.join();
    INFO(run.log());
    CHECK(flips > 0);
    CHECK(code == 0);
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == frames);
    CHECK(r["rebuilds"] == 0);
    CHECK(run.leftovers() == "");
}
