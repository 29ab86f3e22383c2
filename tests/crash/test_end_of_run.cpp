// How a run ends: by command, by signals, by the death of its supervisor; and what prevents a start.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "runs/run_lock.hpp"
#include "shm/process_id.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

}  // namespace

TEST_CASE("Ctrl-C and `carousel down` deliver every frame that was begun, then end with 0") {
    const bool by_command = GENERATE(true, false);
    run_fixture run;
    run.start(run.pipeline("ends", number_pipeline("ends", "fps = 500\n", "work_ms = 3\n")), {});
    REQUIRE(run.wait_running());
    sleep_s(0.3);
    if (by_command) {
        std::string out;
        CHECK(run.command({"down", "-p", "ends"}, out) == 0);
    } else {
        run.signal(SIGINT);
    }
    CHECK(run.wait(20) == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    CHECK(r["frames"] > 10);
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    CHECK(r["ending"] == "complete");
    CHECK(run.leftovers() == "");
}

TEST_CASE("a thread of a stage may wake its runner until the stage is destroyed") {
    run_fixture run;
    run.start(run.pipeline("wakes", number_pipeline("wakes", "fps = 500\n", "wakes = true\n")),
              {"--frames", "20"});
    CHECK(run.wait(20) == 0);
    CHECK_THAT(run.log(), contains("destroyed before its runner") && !contains("destroyed after its runner"));
    CHECK_THAT(run.log(), !contains("SIGSEGV"));
    CHECK(run.report()["restarts"] == 0);
}

TEST_CASE("a source that needs twenty seconds for a frame learns at once that the run stops or ended") {
    const bool stopped = GENERATE(true, false);
    run_fixture run;
    run.start(run.pipeline("rare", number_pipeline("rare", "fps = 0.05\n")),
              stopped ? std::vector<std::string>{} : std::vector<std::string>{"--frames", "2"});
    // The first two frames come at once (a source catches up by one), the third would come in twenty seconds.
    CHECK(run.wait_until([&] { return !run.running() || run.stage("sink").value("frames", 0) == 2; }));
    const f64 since = seconds_now();
    if (stopped) run.signal(SIGINT);
    CHECK(run.wait(15) == 0);
    CHECK(seconds_now() - since < 4);  // stop_timeout_ns is 5 s
    INFO(run.log());
    CHECK(run.report()["frames"] == 2);
    CHECK(run.report()["ending"] == "complete");
    CHECK_THAT(run.log(), !contains("s after the last frame"));
    CHECK(run.leftovers() == "");
}

TEST_CASE("an end in the middle of kills is an end, too") {
    run_fixture run;
    run.start(run.pipeline("storm", number_pipeline("storm", "fps = 500\n")), {"--frames", "1000000"});
    REQUIRE(run.wait_running());
    for (int k = 0; k < 10; ++k) {
        run.hit(k % 2 == 0 ? "numbers" : "sink", SIGKILL);
        sleep_s(0.02);
    }
    run.signal(SIGINT);
    for (int k = 0; k < 5; ++k) run.hit("middle", SIGKILL);
    CHECK(run.wait(30) == 0);
    INFO(run.log());
    CHECK(run.report()["lost"] == 0);
    CHECK(run.report()["ending"] == "complete");
}

TEST_CASE("a second Ctrl-C ends the run at once, and the report has the delivered frames") {
    run_fixture run;
    run.start(run.pipeline("twice", number_pipeline("twice", "frame_timeout_ms = 60000\n",
                                                    "die_at = 50\ndie_how = \"hang\"\n")),
              {});
    CHECK(run.wait_until([&] { return run.log().find("dying as configured") != std::string::npos; }));
    run.signal(SIGINT);
    sleep_s(0.2);
    CHECK(run.running());
    run.signal(SIGINT);
    CHECK(run.wait(10) == 128 + SIGINT);
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    CHECK(r["ending"] == "interrupted");
    CHECK(r["frames"] == 50);
    CHECK(r["lost"] == 0);
    CHECK(run.leftovers() == "");
}

TEST_CASE("a second run of a name with a running supervisor is refused, or waits if requested") {
    run_fixture run;
    const std::string file = run.pipeline("once", number_pipeline("once", "fps = 200\n"));
    run.start(file, {"--frames", "1000"});
    REQUIRE(run.wait_running());
    std::string out;
    CHECK(run.command({"run", file, "--frames", "10"}, out) == 2);
    CHECK_THAT(out, contains(fmt::format("already running (pid {})",
                                         run.ask({{"type", "ps"}})["pipeline"]["pid"].get<int>())));
    CHECK(run.command({"run", file, "--frames", "10", "--wait", "20"}, out) == 0);
    CHECK(run.wait() == 0);
    CHECK(run.leftovers() == "");
}

TEST_CASE("leftovers of a killed supervisor are ended and removed by the next run with --fresh") {
    run_fixture run;
    const std::string file = run.pipeline("killed", number_pipeline("killed", "fps = 200\n"));
    run.start(file, {}, {"CAROUSEL_SUPERVISOR_GRACE_S=60"});
    REQUIRE(run.wait_running());
    const i32 orphan = run.pid_of("middle");
    ::kill(run.ask({{"type", "ps"}})["pipeline"]["pid"].get<i32>(), SIGKILL);
    CHECK(run.wait() == -SIGKILL);
    CHECK(::kill(orphan, 0) == 0);
    CHECK_FALSE(run.leftovers().empty());
    run.start(file, {"--frames", "50", "--fresh"});
    CHECK(run.wait() == 0);
    CHECK(run.report()["frames"] == 50);
    CHECK(run.leftovers() == "");
}

TEST_CASE("stages exit when no supervisor takes over their run") {
    run_fixture run;
    run.start(run.pipeline("orphans", number_pipeline("orphans", "fps = 200\n")), {},
              {"CAROUSEL_SUPERVISOR_GRACE_S=1"});
    REQUIRE(run.wait_running());
    std::vector<i32> orphans;
    for (const char* stage : {"numbers", "middle", "sink"}) orphans.push_back(run.pid_of(stage));
    ::kill(run.ask({{"type", "ps"}})["pipeline"]["pid"].get<i32>(), SIGKILL);
    CHECK(run.wait() == -SIGKILL);
    const auto gone = [](i32 pid) { return !shm::is_alive({pid, shm::start_time_of(pid)}); };
    CHECK(run.wait_until([&] { return std::all_of(orphans.begin(), orphans.end(), gone); }, 5));
    std::string out;
    CHECK(run.command({"clean"}, out) == 0);
    CHECK(run.leftovers() == "");
}

TEST_CASE("a file that can't be written or found gives one sentence as error and no leftovers") {
    struct bad {
        std::vector<std::string> args;
        int code;
        std::string message;
    };
    const auto b =
        GENERATE(bad{{"--report", "/nowhere/r.json"}, 75, "the report can't be written to /nowhere/r.json"},
                 bad{{"--out", "/proc/nothing/f_%05d.png"}, 75, "pictures can't be written to /proc/nothing"},
                 bad{{"--device", "cuda:7"}, 3, "there is no such device"},
                 bad{{"--set", "vertex.run=no-such-program"}, 2, "no-such-program"},
                 bad{{"--frames", "-1"}, 2, "frames"}, bad{{"--size", "0x5"}, 2, "size"});
    CAPTURE(b.args);
    run_fixture run;
    const std::string file = run.pipeline("bad", picture_pipeline("bad"));
    std::vector<std::string> command{"run", file};
    command.insert(command.end(), b.args.begin(), b.args.end());
    std::string out;
    CHECK(run.command(command, out) == b.code);
    CHECK_THAT(out, contains(b.message));
    CHECK(run.leftovers() == "");
}

TEST_CASE("a runtime directory that can't be made is refused") {
    if (::geteuid() == 0) CAROUSEL_SKIP("root writes everywhere");
    run_fixture run;
    const std::string file = run.pipeline("closed", picture_pipeline("closed"));
    REQUIRE(::chmod(run.path("runtime").c_str(), 0500) == 0);
    std::string out;
    CHECK(run.command({"run", file}, out) == 74);
    REQUIRE(::chmod(run.path("runtime").c_str(), 0700) == 0);
}

TEST_CASE("a run that restarts with new memory and control words loses and repeats no frame") {
    constexpr u64 frames = 1200;
    run_fixture quiet;
    quiet.start(quiet.pipeline("again", number_pipeline("again")), {"--frames", std::to_string(frames)});
    REQUIRE(quiet.wait() == 0);
    run_fixture run;
    run.start(run.pipeline("again", number_pipeline("again", "fps = 400\n", "work_ms = 2\n")),
              {"--frames", std::to_string(frames)});
    for (int k = 0; k < 5; ++k) {
        REQUIRE(run.wait_running());
        sleep_s(0.2);
        CHECK(run.ask({{"type", "rebuild"}})["ok"] == true);
        if (k % 2 == 1) run.hit("middle", SIGKILL);
    }
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    CHECK(r["frames"] == frames);
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    CHECK(r["rebuilds"] == 5);
    CHECK(r["image_hash"] == quiet.report()["image_hash"]);
    CHECK(run.leftovers() == "");
}

TEST_CASE("two blocking sinks both get every frame while they are killed in turn") {
    run_fixture run;
    const std::string text = number_pipeline("fanout", "fps = 400\n") + fmt::format(R"(
[[stage]]
name = "other"
run = "{}/carousel-test-number"
inputs = ["middle"]
sink = true
)",
                                                                                    programs());
    run.start(run.pipeline("fanout", text), {"--frames", "1000"});
    REQUIRE(run.wait_running());
    for (int k = 0; k < 30; ++k) {
        run.hit(k % 2 == 0 ? "sink" : "other", SIGKILL);
        sleep_s(0.03);
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r["sinks"].size() == 2);
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    CHECK(r["sinks"][0]["image_hash"] == r["sinks"][1]["image_hash"]);
}
