// What degrades or blocks a run is logged, shown and reported, and the run continues with the live stages.
#include <csignal>

#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

/// Waits until `ps` shows a problem that contains the word; returns its text, "" if it doesn't come.
std::string problem_with(run_fixture& run, const std::string& word) {
    std::string found;
    run.wait_until(
        [&] {
            const json ps = run.ask({{"type", "ps"}});
            for (const json& each : ps.value("problems", json::array()))
                if (each.get<std::string>().find(word) != std::string::npos) found = each;
            return !found.empty();
        },
        10);
    return found;
}

u64 frames_of(run_fixture& run) { return run.ask({{"type", "ps"}})["pipeline"].value("frames", u64{0}); }

}  // namespace

TEST_CASE("a replaced process that does not end is named with its buffers, and the run continues") {
    run_fixture run;
    run.start(run.pipeline("unfenced", picture_pipeline("unfenced", "frame_timeout_ms = 400\nfps = 300\n")),
              {}, {"CAROUSEL_TEST_KILL_DELAY_MS=60000"});
    REQUIRE(run.wait_running());
    const i32 pid = run.pid_of("fragment");
    REQUIRE(::kill(pid, SIGSTOP) == 0);
    const std::string text = problem_with(run, "pid " + std::to_string(pid));
    INFO(run.log());
    CHECK_THAT(text, contains("has not ended"));
    const u64 then = frames_of(run);
    CHECK(run.wait_until([&] { return frames_of(run) > then + 20; }));
    std::string out;
    REQUIRE(run.command({"ps", "-p", "unfenced"}, out) == 0);
    CHECK_THAT(out, contains("! fragment: pid " + std::to_string(pid)));
    REQUIRE(::kill(pid, SIGKILL) == 0);
    CHECK(run.wait_until(
        [&] {
            return run.ask({{"type", "ps"}}).value("problems", json::array()).empty();
        },
        5));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    const json r = run.report();
    CHECK(r["lost"] == 0);
    REQUIRE(r["problems"].size() == 1);
    CHECK(r["problems"][0]["text"] == text);
    CHECK(r["problems"][0]["lasted_s"] > 0);
    CHECK_THAT(run.log(), contains(text));
}

TEST_CASE("a stage that is down is named as long as it is, since others wait for it") {
    run_fixture run;
    run.start(run.pipeline("held", picture_pipeline("held", "fps = 300\n")), {});
    REQUIRE(run.wait_running());
    std::string out;
    REQUIRE(run.command({"down", "vertex", "-p", "held"}, out) == 0);
    CHECK_THAT(problem_with(run, "vertex is down"), contains("upstream stages block when"));
    REQUIRE(run.command({"up", "vertex", "-p", "held"}, out) == 0);
    CHECK(run.wait_until(
        [&] {
            return run.ask({{"type", "ps"}}).value("problems", json::array()).empty();
        },
        5));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    CHECK(run.report()["lost"] == 0);
    CHECK(run.leftovers() == "");
}
