// Stages that hang or are stopped, paused, taken down, replaced or started by hand.
#include <fmt/format.h>

#include <csignal>

#include "shm/process_id.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

void check_nothing_lost(run_fixture& run, int code = 0) {
    CHECK(run.wait() == code);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(run.leftovers() == "");
}

u64 frames_of(run_fixture& run) {
    const json p = run.ask({{"type", "ps"}});
    return p.contains("pipeline") ? p["pipeline"]["frames"].get<u64>() : 0;
}

/// The number of frames once it stays the same: those in progress have arrived.
u64 frames_when_idle(run_fixture& run) {
    u64 frames = ~u64{0};
    REQUIRE(run.wait_until(
        [&] {
            const u64 now = frames_of(run);
            const bool rests = now == frames;
            frames = now;
            sleep_s(0.3);
            return rests;
        },
        20));
    return frames;
}

}  // namespace

TEST_CASE("a stage stopped by a signal is replaced at its deadline, and its frames are not blamed") {
    run_fixture run;
    run.start(run.pipeline("sigstop", number_pipeline("sigstop", "frame_timeout_ms = 1000\nfps = 200\n")),
              {"--frames", "1000"});
    REQUIRE(run.wait_running());
    for (const char* stage : {"middle", "numbers", "sink"}) {
        const i32 before = run.pid_of(stage);
        REQUIRE(before > 0);
        REQUIRE(::kill(before, SIGSTOP) == 0);
        const f64 since = seconds_now();
        CHECK(run.wait_until([&] { return run.pid_of(stage) != before && run.pid_of(stage) != 0; }, 10));
        CHECK(seconds_now() - since < 5.0);
    }
    check_nothing_lost(run);
    CHECK(run.report()["dead_letters"].empty());
    CHECK(run.report()["restarts"] == 3);
}

TEST_CASE("a stage that hangs inside process is replaced at its deadline") {
    run_fixture run;
    const std::string middle =
        "die_at = 20\ndie_how = \"hang\"\ndie_incarnations = 2\nin_flight = 1\nframe_timeout_ms = 1500\n";
    run.start(run.pipeline("hang", number_pipeline("hang", "frame_timeout_ms = 30000\n", middle)),
              {"--frames", "100"});
    check_nothing_lost(run);
    const json r = run.report();
    CHECK(r["restarts"] == 2);
    CHECK(r["kills_at"]["aborted"] == 2);
}

TEST_CASE("a paused stage has no deadline, the pipeline waits, and its own process continues") {
    run_fixture run;
    run.start(run.pipeline("hold", number_pipeline("hold", "frame_timeout_ms = 1000\nfps = 500\n",
                                                   "enqueue_ms = 20\n")),
              {"--frames", "150"});
    REQUIRE(run.wait_running());
    const i32 before = run.pid_of("middle");
    std::string out;
    // from now on the stage has a frame in progress nearly all the time
    REQUIRE(run.wait_until([&] { return frames_of(run) > 3; }));
    REQUIRE(run.command({"stop", "middle", "-p", "hold"}, out) == 0);
    CHECK(run.stage("middle")["state"] == "stopped");
    const u64 frames = frames_when_idle(run);
    sleep_s(3.0);  // three deadlines
    CHECK(frames_of(run) == frames);
    CHECK(run.pid_of("middle") == before);
    REQUIRE(run.command({"cont", "middle", "-p", "hold"}, out) == 0);
    check_nothing_lost(run);
    CHECK(run.report()["restarts"] == 0);
}

TEST_CASE("a paused stage that is killed stays paused, and cont refuses one that is not paused") {
    run_fixture run;
    run.start(run.pipeline("kept", number_pipeline("kept", "fps = 500\n")));
    REQUIRE(run.wait_running());
    std::string out;
    CHECK(run.command({"cont", "middle", "-p", "kept"}, out) == 2);
    CHECK_THAT(out, contains("it is not paused"));
    CHECK(run.command({"ps", "--check", "-p", "kept"}, out) == 0);
    CHECK(out.empty());
    REQUIRE(run.command({"stop", "middle", "-p", "kept"}, out) == 0);
    const char* how = GENERATE("kill", "restart");
    const i32 before = run.pid_of("middle");
    REQUIRE(run.command({how, "middle", "-p", "kept"}, out) == 0);
    CHECK_THAT(out, contains("its successor is paused until `carousel cont middle`"));
    REQUIRE(run.wait_until([&] {
        return run.pid_of("middle") > 0 && run.pid_of("middle") != before &&
               run.stage("middle")["state"] == "stopped" && shm::is_stopped(run.pid_of("middle"));
    }));
    const u64 frames = frames_when_idle(run);
    REQUIRE(run.wait_until([&] { return run.command({"ps", "--check", "-p", "kept"}, out) == 1; }));
    CHECK_THAT(out, contains("middle"));
    CHECK(frames_of(run) == frames);
    REQUIRE(run.command({"cont", "middle", "-p", "kept"}, out) == 0);
    CHECK(run.wait_until([&] { return frames_of(run) > frames + 100; }));
    CHECK(run.wait_until([&] { return run.command({"ps", "--check", "-p", "kept"}, out) == 0; }));
    run.signal(SIGINT);
    check_nothing_lost(run);
}

TEST_CASE("a source that is taken down is a problem that alerts can see") {
    run_fixture run;
    run.start(run.pipeline("dry", number_pipeline("dry", "fps = 500\n")));
    REQUIRE(run.wait_running());
    std::string out;
    const auto source = run.stages().front()["name"].get<std::string>();
    REQUIRE(run.command({"down", source, "-p", "dry"}, out) == 0);
    REQUIRE(run.wait_until([&] { return !run.ask({{"type", "ps"}})["problems"].empty(); }));
    CHECK(run.command({"ps", "--check", "-p", "dry"}, out) == 1);
    CHECK_THAT(out,
               contains(source + " is down: no new frame is produced until `carousel up " + source + "`"));
    REQUIRE(run.command({"up", source, "-p", "dry"}, out) == 0);
    CHECK(run.wait_until([&] { return run.command({"ps", "--check", "-p", "dry"}, out) == 0; }));
    run.signal(SIGINT);
    check_nothing_lost(run);
}

TEST_CASE("a paused pipeline takes next to no processor time") {
    run_fixture run;
    run.start(run.pipeline("paused", picture_pipeline("paused")), {});
    REQUIRE(run.wait_running());
    std::string out;
    REQUIRE(run.command({"stop", "display", "-p", "paused"}, out) == 0);
    sleep_s(0.5);
    const auto ticks = [&] {
        u64 sum = 0;
        std::vector<i32> pids{run.pid()};
        for (const char* s : {"geometry", "vertex", "fragment", "display"}) pids.push_back(run.pid_of(s));
        for (const i32 pid : pids) {
            std::ifstream in(fmt::format("/proc/{}/stat", pid));
            std::string word;
            for (int k = 1; in >> word; ++k)
                if (k == 14 || k == 15) sum += std::stoull(word);
        }
        return sum;
    };
    f64 share = 1;
    // on a shared machine stolen time slices may be counted
    for (int attempt = 0; attempt < 4 && share >= 0.02; ++attempt) {
        const u64 before = ticks();
        const f64 since = seconds_now();
        sleep_s(4);
        share = static_cast<f64>(ticks() - before) / static_cast<f64>(sysconf(_SC_CLK_TCK)) /
                (seconds_now() - since);
    }
    fmt::print("a paused pipeline of four stages and its supervisor take {:.2f} % of a core\n", share * 100);
    CHECK(share < 0.02);
    run.signal(SIGINT);
    check_nothing_lost(run);
}

TEST_CASE("a stage that is down stays down, and up brings it back, while the ring waits") {
    run_fixture run;
    run.start(run.pipeline("down", number_pipeline("down", "fps = 500\n")));
    REQUIRE(run.wait_running());
    std::string out;
    REQUIRE(run.command({"down", "middle", "-p", "down"}, out) == 0);
    CHECK(run.stage("middle")["state"] == "down");
    const u64 frames = frames_when_idle(run);
    sleep_s(0.5);
    CHECK(frames_of(run) == frames);
    CHECK(run.stage("middle")["state"] == "down");
    CHECK(run.command({"stop", "middle", "-p", "down"}, out) == 2);
    REQUIRE(run.command({"up", "middle", "-p", "down"}, out) == 0);
    CHECK(run.wait_until([&] { return frames_of(run) > frames + 100; }));
    run.signal(SIGINT);
    check_nothing_lost(run);
}

TEST_CASE("a stage started by hand takes a seat that is down, and only such a one") {
    run_fixture run;
    run.start(run.pipeline("hand", number_pipeline("hand", "fps = 200\n")), {"--frames", "1200"});
    REQUIRE(run.wait_running());
    const auto by_hand = [&](const std::string& stage) {
        supervisor::spawn_request r;
        r.argv = {programs() + "/carousel-test-number", "-p", "hand", "--stage", stage};
        r.environment = {"XDG_RUNTIME_DIR=" + run.path("runtime")};
        return supervisor::spawn(r);
    };
    const supervisor::spawned refused = by_hand("middle");
    CHECK(run.wait_until([&] { return supervisor::has_ended(refused.pidfd.get()); }, 5));
    CHECK(supervisor::reap(refused.pidfd.get()).exit_code == 2);
    std::string out;
    REQUIRE(run.command({"down", "middle", "-p", "hand"}, out) == 0);
    const supervisor::spawned worker = by_hand("middle");
    CHECK(run.wait_until([&] { return run.stage("middle")["state"] == "running"; }, 5));
    CHECK(run.pid_of("middle") == worker.pid);
    const u64 frames = frames_of(run);
    CHECK(run.wait_until([&] { return frames_of(run) > frames + 20; }, 5));
    ::kill(worker.pid, SIGKILL);
    CHECK(run.wait_until([&] { return supervisor::has_ended(worker.pidfd.get()); }, 5));
    (void)supervisor::reap(worker.pidfd.get());
    CHECK(run.wait_until([&] { return run.stage("middle")["state"] == "down"; }, 5));
    REQUIRE(run.command({"up", "middle", "-p", "hand"}, out) == 0);
    check_nothing_lost(run);
}

TEST_CASE("a stage rebuilt during the run takes over at a restart, no frame lost") {
    namespace fs = std::filesystem;
    run_fixture run;
    const std::string program = run.path("my-stage");
    fs::copy_file(programs() + "/carousel-test-number", program);
    std::string text = number_pipeline("rebuilt", "fps = 300\n");
    const std::string old = "run = \"" + programs() + "/carousel-test-number\"\ninputs = [\"numbers\"]";
    REQUIRE(text.find(old) != std::string::npos);
    text.replace(text.find(old), old.size(), "run = \"" + program + "\"\ninputs = [\"numbers\"]");
    run.start(run.pipeline("rebuilt", text));
    REQUIRE(run.wait_running());
    fs::copy_file(programs() + "/carousel-test-number-2", program + ".new");
    fs::rename(program + ".new", program);  // as a linker does: a new file under the old name
    std::string out;
    REQUIRE(run.command({"restart", "middle", "-p", "rebuilt"}, out) == 0);
    CHECK(
        run.wait_until([&] { return run.log().find("number stage of build second") != std::string::npos; }));
    const u64 frames = frames_of(run);
    CHECK(run.wait_until([&] { return frames_of(run) > frames + 100; }));
    run.signal(SIGINT);
    check_nothing_lost(run);
    CHECK_THAT(run.log(), contains("number stage of build second"));
    CHECK(run.report()["restarts"] == 1);
}

TEST_CASE("a stage under a tool runs without a deadline") {
    run_fixture run;
    const std::string middle = "prefix = \"env CAROUSEL_SOMETHING=1\"\nenqueue_ms = 1500\n";
    run.start(run.pipeline("tool", number_pipeline("tool", "frame_timeout_ms = 1000\n", middle)),
              {"--frames", "3"});
    check_nothing_lost(run);
    CHECK(run.report()["restarts"] == 0);
}

TEST_CASE("a latest reader stopped with a frame blocks no stage") {
    run_fixture run;
    const std::string text =
        number_pipeline("latest", "latest_lease_ms = 100\nframe_timeout_ms = 1000\nfps = 400\n") +
        fmt::format(R"(
[[stage]]
name = "watcher"
run = "{}/carousel-test-number"
inputs = ["middle"]
sink = true
group = "latest"
work_ms = 30
finish_threads = 4
)",
                    programs());
    run.start(run.pipeline("latest", text), {"--frames", "1200"});
    REQUIRE(run.wait_running());
    REQUIRE(run.wait_until([&] { return run.stage("watcher").value("frames", 0) > 3; }));
    const i32 watcher = run.pid_of("watcher");
    REQUIRE(watcher > 0);
    REQUIRE(::kill(watcher, SIGSTOP) == 0);  // the stage works on a frame nearly all the time
    const u64 frames = frames_of(run);
    const f64 since = seconds_now();
    CHECK(run.wait_until([&] { return frames_of(run) > frames + 300; }, 10));
    CHECK(seconds_now() - since < 5);
    check_nothing_lost(run);
    CHECK(run.report()["frames"] == 1200);
    CHECK_THAT(run.log(), contains("finish_threads = 4 is ignored: a stage in a latest group"));
}
