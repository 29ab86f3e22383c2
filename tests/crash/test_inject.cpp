// `carousel inject`: a stage fails on demand, the other stages are not affected.
#include <fmt/format.h>

#include <csignal>

#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

void check_whole(run_fixture& run, u64 restarts) {
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["dead_letters"].empty());  // the frames were innocent
    CHECK(r["restarts"] == restarts);
    CHECK(run.leftovers() == "");
}

int inject(run_fixture& run, const std::string& name, const std::string& stage, const std::string& fault,
           std::string& out) {
    return run.command({"inject", stage, "--fault", fault, "-p", name}, out);
}

bool replaced(run_fixture& run, const std::string& stage, i32 before) {
    return run.wait_until(
        [&] {
            return run.pid_of(stage) != before && run.pid_of(stage) != 0 &&
                   run.stage(stage)["state"] == "running";
        },
        10);
}

}  // namespace

TEST_CASE("an injected hang is found at frame_timeout_ms, and the successor works") {
    run_fixture run;
    run.start(run.pipeline("ihang", number_pipeline("ihang", "frame_timeout_ms = 1000\nfps = 200\n")),
              {"--frames", "1200"});
    REQUIRE(run.wait_running());
    for (const char* stage : {"middle", "numbers", "sink"}) {
        const i32 before = run.pid_of(stage);
        std::string out;
        const f64 since = seconds_now();
        REQUIRE(inject(run, "ihang", stage, "hang", out) == 0);
        CHECK_THAT(out, contains("at its next frame; it is replaced 1000 ms later"));
        CHECK(replaced(run, stage, before));
        CHECK(seconds_now() - since > 0.9);
        CHECK(seconds_now() - since < 5.0);
        CHECK(run.stage(stage)["last_exit"] == "deadline missed, injected");
    }
    check_whole(run, 3);
}

TEST_CASE("a process is replaced at once after each injected exit or abort") {
    run_fixture run;
    run.start(run.pipeline("iexit", number_pipeline("iexit", "fps = 200\n")), {"--frames", "800"});
    REQUIRE(run.wait_running());
    for (int k = 0; k < 6; ++k) {  // more deaths by its own fault than a stage may have without a frame
        const i32 before = run.pid_of("middle");
        std::string out;
        REQUIRE(inject(run, "iexit", "middle", k % 2 == 0 ? "exit" : "abort", out) == 0);
        CHECK(replaced(run, "middle", before));
        CHECK_THAT(run.stage("middle")["last_exit"].get<std::string>(),
                   contains(k % 2 == 0 ? "exit code 3, injected" : "SIGABRT), injected"));
    }
    check_whole(run, 6);
}

TEST_CASE("an injected exception ends only its process, which logs it, and blames no frame") {
    run_fixture run;
    run.start(run.pipeline("ithrow", number_pipeline("ithrow", "fps = 200\n")), {"--frames", "500"});
    REQUIRE(run.wait_running());
    for (const char* stage : {"middle", "numbers", "sink"}) {
        const i32 before = run.pid_of(stage);
        std::string out;
        REQUIRE(inject(run, "ithrow", stage, "throw", out) == 0);
        CHECK(replaced(run, stage, before));
        CHECK_THAT(run.stage(stage)["last_exit"].get<std::string>(), contains("injected"));
    }
    check_whole(run, 3);
    CHECK_THAT(run.log(), contains("injected by `carousel inject`, frame "));
}

TEST_CASE("a fault whose process died before taking it is not injected into another process") {
    run_fixture run;
    run.start(run.pipeline("iheir", number_pipeline("iheir", "frame_timeout_ms = 1000\nfps = 200\n")),
              {"--frames", "500"});
    REQUIRE(run.wait_running());
    std::string out;
    REQUIRE(run.command({"stop", "numbers", "-p", "iheir"}, out) == 0);
    sleep_s(0.3);  // the frames in progress have arrived: the middle has no frame
    const i32 before = run.pid_of("middle");
    REQUIRE(inject(run, "iheir", "middle", "hang", out) == 0);
    REQUIRE(run.command({"kill", "middle", "-p", "iheir"}, out) == 0);
    REQUIRE(replaced(run, "middle", before));
    REQUIRE(run.command({"cont", "numbers", "-p", "iheir"}, out) == 0);
    check_whole(run, 1);
}

TEST_CASE("impossible faults are refused, and the possible ones are named") {
    run_fixture run;
    run.start(
        run.pipeline("ino", number_pipeline("ino", "fps = 200\n", "prefix = \"env CAROUSEL_SOMETHING=1\"\n")),
        {});
    REQUIRE(run.wait_running());
    std::string out;
    CHECK(inject(run, "ino", "sink", "gpu-fault", out) == 2);
    CHECK_THAT(
        out,
        contains("sink runs on the CPU and can't have a GPU fault: use `carousel kill sink --signal SEGV`"));
    CHECK(inject(run, "ino", "sink", "hagn", out) == 2);
    CHECK_THAT(out, contains("--fault hagn: unknown fault") && contains("did you mean \"hang\"?"));
    CHECK(inject(run, "ino", "middle", "hang", out) == 2);
    CHECK_THAT(out, contains("runs under a tool and has no deadline"));
    CHECK_THAT(run.ask({{"type", "inject"}, {"stage", "sink"}, {"fault", "earthquake"}}).dump(),
               contains("unknown fault"));
    run.signal(SIGINT);
    check_whole(run, 0);
}
