// Every named step at which a stage can die, tested one after the other, many per run: for each step and each
// kind of death, the pictures equal those of a run without faults.
#include <fmt/format.h>

#include <fstream>

#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;

TEST_CASE("a kill at every named step of every role loses, repeats and tears nothing") {
    drive("kill", true, test_seed());
}

TEST_CASE("the display dies at every step of a frame, and the source while loading: equal pictures") {
    const auto start = [](run_fixture& run, const std::vector<std::string>& environment) {
        run.start(run.pipeline("pictures", picture_pipeline("pictures", crash_keys)), {"--frames", "1000"},
                  environment);
    };
    run_fixture calm;
    start(calm, {});
    REQUIRE(calm.wait() == 0);
    const u64 seed = test_seed();
    CAPTURE(seed);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("geometry", crash_point::asset_loading, "kill", 1);
    plan.add("geometry", crash_point::asset_loaded, "kill", 1);
    plan.add_incarnations("display", role::sink, "kill", {}, seed);
    plan.write();
    start(run, {plan.environment()});
    CHECK(run.wait(100) == 0);
    INFO(run.log());
    CHECK(plan.pending_lines() == "");
    check_whole(run, 1000, calm.report()["image_hash"], plan.lines());
}

TEST_CASE("a stage that dies while it leaves changes nothing about the run's end") {
    const std::string hash = undisturbed_hash(200);
    for (const crash_point point : ending_points()) {
        CAPTURE(std::string(name_of(point)));
        run_fixture run;
        crash_plan plan(run.path("plan"));
        for (const char* stage : {"numbers", "middle", "sink"}) plan.add(stage, point, "kill", 1);
        plan.write();
        run.start(run.pipeline("leaving", number_pipeline("leaving")), {"--frames", "200"},
                  {plan.environment()});
        CHECK(run.wait() == 0);
        INFO(run.log());
        CHECK(plan.pending_lines() == "");
        check_whole(run, 200, hash, 0);
    }
}

TEST_CASE("a helper that dies after its commit leaves the frame to the next helper") {
    const std::string hash = undisturbed_hash(600);
    for (const crash_point point : {crash_point::help_committed, crash_point::help_ready}) {
        CAPTURE(std::string(name_of(point)));
        run_fixture run;
        crash_plan plan(run.path("plan"));
        // complete but not committed: its consumer commits it
        plan.add("numbers", crash_point::work_complete, "stop", 50);
        plan.add("middle", point, "kill", 1);
        plan.write();
        run.start(run.pipeline("helper", number_pipeline("helper", crash_keys)), {"--frames", "600"},
                  {plan.environment()});
        CHECK(run.wait() == 0);
        INFO(run.log());
        CHECK(plan.pending_lines() == "");
        check_whole(run, 600, hash, 2);
    }
}

TEST_CASE("a latest reader that dies with or without its lease blocks no stage") {
    const std::string hash = undisturbed_hash(600);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    for (const crash_point point :
         {crash_point::latest_leased, crash_point::latest_read, crash_point::latest_released})
        plan.add("watcher", point, "kill", 12);
    plan.write();
    const std::string text = number_pipeline("watched", crash_keys) + fmt::format(R"(
[[stage]]
name = "watcher"
run = "{}/carousel-test-number"
inputs = ["middle"]
group = "latest"
sink = true
)",
                                                                                  programs());
    run.start(run.pipeline("watched", text), {"--frames", "600"}, {plan.environment()});
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(plan.pending_lines() == "");
    check_whole(run, 600, hash, 3);
}

TEST_CASE("a plan with an unknown crash point or action is refused, so that no test passes idly") {
    const auto [line, complaint] = GENERATE(table<std::string, std::string>(
        {{"middle job_comitted kill 1", "unknown crash point \"job_comitted\""},
         {"middle job_committed kil 1", "unknown action \"kil\""}}));
    run_fixture run;
    std::ofstream(run.path("plan")) << line << "\n";
    run.start(run.pipeline("unknown", number_pipeline("unknown")), {"--frames", "10"},
              {"CAROUSEL_CRASH_PLAN=" + run.path("plan")});
    CHECK(run.wait() != 0);
    CHECK_THAT(run.log(), contains(complaint));
}
