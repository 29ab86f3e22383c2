// Deadlines of real processes: which process is late by which clock, and which is not (the table in
// pipelines/supervisor/policy/clocks.hpp).
#include <fmt/format.h>

#include <csignal>

#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

constexpr const char* all_stages[] = {"sink", "middle", "numbers"};

void check_nothing_lost(run_fixture& run) {
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(run.report()["dead_letters"].empty());
    CHECK(run.leftovers() == "");
}

/// Wide windows: a stage takes its next frame although its neighbours already hang.
std::string wide(const std::string& name) {
    return number_pipeline(name, "frame_timeout_ms = 3000\nfps = 100\n") +
           "[link.numbers]\nwindow = 40\n[link.middle]\nwindow = 40\n";
}

}  // namespace

TEST_CASE("a stage slower than others but within frame_timeout_ms is not restarted") {
    // With three frames in flight the third waits for more than the timeout: for the queue's work in the
    // middle, for finish() in the sink. Other programs may delay a stage for that long once. A wrong clock
    // replaces it each time.
    json restarts;
    for (int k = 0; k < 3 && restarts != 0; ++k) {
        run_fixture run;
        run.start(run.pipeline("slow",
                               number_pipeline("slow", "frame_timeout_ms = 800\n",
                                               "enqueue_ms = 300\nwork_ms = 350\n", "", "finish_ms = 350\n")),
                  {"--frames", "8"});
        check_nothing_lost(run);
        restarts = run.report()["restarts"];
    }
    CHECK(restarts == 0);
}

TEST_CASE("stages that hang or stop at the same time are all replaced one frame_timeout later") {
    const bool stopped = GENERATE(false, true);
    run_fixture run;
    run.start(run.pipeline("three", wide("three")), {"--frames", "400"});
    REQUIRE(run.wait_running());
    i32 before[3];
    for (int k = 0; k < 3; ++k) before[k] = run.pid_of(all_stages[k]);
    const f64 since = seconds_now();
    for (int k = 0; k < 3; ++k) {
        if (stopped) {
            REQUIRE(::kill(before[k], SIGSTOP) == 0);
            continue;
        }
        REQUIRE(
            run.ask({{"type", "inject"}, {"stage", all_stages[k]}, {"fault", "hang"}}).value("ok", false));
        const std::string expected = fmt::format("{:<8} | warning: `carousel inject`: hang", all_stages[k]);
        // otherwise the next one starves it of frames
        REQUIRE(run.wait_until([&] { return run.log().find(expected) != std::string::npos; }, 5));
    }
    for (int k = 0; k < 3; ++k)
        CHECK(run.wait_until(
            [&] {
                const i32 pid = run.pid_of(all_stages[k]);
                return pid != before[k] && pid != 0;
            },
            20));
    const f64 took = seconds_now() - since;
    INFO(run.log());
    fmt::print("three stages {}: all replaced {:.2f} s later\n", stopped ? "stopped" : "hung", took);
    CHECK(took > 2.9);
    CHECK(took < 5.7);  // one after the other: 9 s
    check_nothing_lost(run);
    CHECK(run.report()["restarts"] == 3);
}

TEST_CASE("a hang on the device, in finish() and in process() is found by its own clock") {
    struct row {
        const char *how, *expected;
        bool sink;
    };
    const auto r = GENERATE(
        row{"hang", "process() of a frame takes longer than frame_timeout_ms = 1500", false},
        row{"hang_device", "the GPU work of a frame takes longer than frame_timeout_ms = 1500", false},
        row{"hang_finish", "finish() of a frame takes longer than frame_timeout_ms = 1500", true});
    run_fixture run;
    const std::string keys = fmt::format(
        "die_at = 20\ndie_how = \"{}\"\ndie_incarnations = 1\nframe_timeout_ms = 1500\nin_flight = 1\n",
        r.how);
    const std::string text =
        number_pipeline("own", "frame_timeout_ms = 30000\n", r.sink ? "" : keys, "", r.sink ? keys : "");
    const f64 since = seconds_now();
    run.start(run.pipeline("own", text), {"--frames", "60"});
    CHECK(run.wait() == 0);
    CHECK(seconds_now() - since < 20);
    CHECK_THAT(run.log(), contains(r.expected));
    check_undamaged(run.report());
    CHECK(run.report()["restarts"] == 1);
}

TEST_CASE("first_frame_timeout_ms limits a process's first frame, frame_timeout_ms later ones") {
    // Each frame takes longer than frame_timeout_ms and less than first_frame_timeout_ms: the process commits
    // its first and is replaced at its second, which is the first of its successor.
    run_fixture run;
    const std::string keys =
        "enqueue_ms = 1800\nframe_timeout_ms = 900\nfirst_frame_timeout_ms = 20000\nin_flight = 1\n";
    run.start(run.pipeline("first", number_pipeline("first", "frame_timeout_ms = 30000\n", keys)),
              {"--frames", "2"});
    check_nothing_lost(run);
    CHECK(run.report()["frames"] == 2);
    CHECK(run.report()["restarts"] == 1);
    CHECK_THAT(run.log(), contains("process() of a frame takes longer than frame_timeout_ms = 900"));
    CHECK_THAT(run.log(), !contains("first_frame_timeout_ms = "));
}

TEST_CASE("a process that hangs at its first frame is replaced by first_frame_timeout_ms") {
    run_fixture run;
    const std::string keys =
        "die_at = 0\ndie_how = \"hang\"\ndie_incarnations = 1\nframe_timeout_ms = 300\n"
        "first_frame_timeout_ms = 1500\nin_flight = 1\n";
    const f64 since = seconds_now();
    run.start(run.pipeline("hang", number_pipeline("hang", "frame_timeout_ms = 30000\n", keys)),
              {"--frames", "3"});
    check_nothing_lost(run);
    CHECK(seconds_now() - since > 1.5);
    CHECK(run.report()["restarts"] == 1);
    CHECK_THAT(run.log(), contains("process() of a frame takes longer than first_frame_timeout_ms = 1500"));
}

TEST_CASE("frame_timeout_ms = 0 of a stage disables its deadline, and no hang can be injected") {
    run_fixture run;
    run.start(run.pipeline("none", number_pipeline("none", "frame_timeout_ms = 300\n",
                                                   "frame_timeout_ms = 0\nenqueue_ms = 700\n")),
              {"--frames", "3"});
    REQUIRE(run.wait_running());
    const json reply = run.ask({{"type", "inject"}, {"stage", "middle"}, {"fault", "hang"}});
    CHECK_FALSE(reply.value("ok", true));
    CHECK_THAT(reply.dump(), contains("frame_timeout_ms = 0"));
    check_nothing_lost(run);
    CHECK(run.report()["restarts"] == 0);
}

TEST_CASE("a stage that is held while it processes a frame has no deadline") {
    run_fixture run;
    run.start(
        run.pipeline("inhand", number_pipeline("inhand", "frame_timeout_ms = 1500\n", "enqueue_ms = 150\n")),
        {"--frames", "24"});
    REQUIRE(run.wait_running());
    REQUIRE(run.wait_until([&] { return run.stage("middle").value("frames", 0) > 1; }));
    const i32 before = run.pid_of("middle");
    std::string out;
    // it is inside process() all the time
    REQUIRE(run.command({"stop", "middle", "-p", "inhand"}, out) == 0);
    sleep_s(4.5);  // three deadlines
    CHECK(run.pid_of("middle") == before);
    REQUIRE(run.command({"cont", "middle", "-p", "inhand"}, out) == 0);
    check_nothing_lost(run);
    CHECK(run.report()["restarts"] == 0);
}
