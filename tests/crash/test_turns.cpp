// Stages that take turns, with real processes: one that dies, stops or hangs while it has the turn delays no
// other stage for long, and harms no frame. The stages run on the CPU as they would on a GPU that they share.
#include <csignal>
#include <numeric>

#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

constexpr const char* as_on_a_gpu = "CAROUSEL_TEST_DEPTH_ON_CPU=1";

u64 turns(const json& report, const char* what) {
    u64 sum = 0;
    for (const json& s : report.at("stages"))
        if (s.at("turns").is_object()) sum += s["turns"].at(what).get<u64>();
    return sum;
}

void check_whole(run_fixture& run, u64 frames) {
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    CHECK(r["frames"] == frames);
    CHECK(r["image_hash"] == undisturbed_hash(frames));
    CHECK(r["rebuilds"] == 0);
    check_undamaged(r);
    CHECK(run.leftovers() == "");
}

}  // namespace

TEST_CASE("stages take turns of as many frames as the file sets, or none") {
    const std::string how = GENERATE(as<std::string>(), "\"auto\"", "2", "\"off\"");
    CAPTURE(how);
    // On a busy machine a stage may be alone for long, and its turn continues: then another run is needed.
    // The middle sleeps one millisecond per frame, so that the others get a processor and request the turn.
    for (int tries = 3; tries > 0; --tries) {
        run_fixture run;
        run.start(
            run.pipeline("turns", number_pipeline("turns", "turns = " + how + "\n", "", "work_ms = 1\n")),
            {"--frames", "600"}, {as_on_a_gpu});
        CHECK(run.wait() == 0);
        INFO(run.log());
        check_whole(run, 600);
        const u64 taken = turns(run.report(), "taken");
        const bool often = taken >= 600 * 3 / 2 / 3;  // a third of them may have continued as a new turn
        if (how == "2" && !often && tries > 1) continue;
        if (how == "\"off\"") {
            CHECK(taken == 0);
        } else {
            CHECK(taken >= 3);
        }
        if (how == "2") CHECK(often);
        break;
    }
}

TEST_CASE("a stage that dies or stops with the turn blocks no stage: the others take it over") {
    const auto [point, how] =
        GENERATE(table<crash_point, std::string>({{crash_point::job_opened, "kill"},
                                                  {crash_point::clock_started, "kill"},
                                                  {crash_point::clock_started, "stop"},
                                                  {crash_point::event_recorded, "kill"},
                                                  {crash_point::work_complete, "stop"},
                                                  {crash_point::work_complete, "kill"}}));
    CAPTURE(std::string(name_of(point)), how);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("middle", point, how, 40);
    plan.add("numbers", point, how, 90);
    plan.write();
    run.start(run.pipeline("holders", number_pipeline("holders", crash_keys + std::string("turns = 2\n"), "",
                                                      "work_ms = 1\n")),
              {"--frames", "400"}, {as_on_a_gpu, plan.environment()});
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(plan.pending_lines() == "");
    check_whole(run, 400);
    CHECK(turns(run.report(), "taken") > 100);
    // At work_complete the turn may have been passed on already, early.
    if (how == "stop" && point == crash_point::clock_started) CHECK(turns(run.report(), "taken_over") >= 1);
}

TEST_CASE("stages that are killed at random while they take turns lose no frame") {
    run_fixture run;
    run.start(
        run.pipeline("random", number_pipeline("random", "fps = 300\nturns = 3\n", "", "work_ms = 1\n")),
        {"--frames", "900"}, {as_on_a_gpu});
    REQUIRE(run.wait_running());
    const char* const victims[] = {"middle", "numbers", "sink"};
    for (int k = 0; k < 12 && run.running(); ++k) {
        run.hit(victims[k % 3], k % 4 == 3 ? SIGABRT : SIGKILL);
        sleep_s(0.15);
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 900);
    CHECK(run.report()["deaths"] >= 3);
}

// The supervisor's own kill is delayed, as for a process that hangs in the kernel.
TEST_CASE("a zombie that held the turn and resumes after its successor harms no frame and no turn") {
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("middle", crash_point::clock_started, "stop", 300);
    plan.write();
    run.start(run.pipeline("woken", number_pipeline("woken", "frame_timeout_ms = 400\nfps = 300\nturns = 2\n",
                                                    "", "work_ms = 1\n")),
              {"--frames", "1200"}, {as_on_a_gpu, "CAROUSEL_TEST_KILL_DELAY_MS=20000", plan.environment()});
    REQUIRE(run.wait_running());
    const i32 before = run.pid_of("middle");
    REQUIRE(before > 0);
    REQUIRE(run.wait_until(
        [&] { return run.stage("middle")["state"] == "running" && run.pid_of("middle") != before; }, 15));
    REQUIRE(::kill(before, 0) == 0);  // the process is still stopped, and had the turn at that moment
    sleep_s(0.3);
    REQUIRE(::kill(before, SIGCONT) == 0);
    CHECK(run.wait_until([&] { return ::kill(before, 0) != 0; }, 10));
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(plan.pending_lines() == "");
    check_whole(run, 1200);
    CHECK(turns(run.report(), "taken_over") >= 1);
    CHECK(turns(run.report(), "taken") > 100);
}
