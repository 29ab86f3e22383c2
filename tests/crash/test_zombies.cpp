// Stages that are stopped in the middle of their work, replaced, and only then continued or killed. The
// supervisor's own kill is delayed by CAROUSEL_TEST_KILL_DELAY_MS, as it is for a process that hangs in the
// kernel.
#include <fmt/format.h>

#include <csignal>
#include <map>

#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

constexpr const char* keys = "frame_timeout_ms = 400\nfps = 400\n";

std::string undisturbed_hash(u64 frames) {
    run_fixture run;
    run.start(run.pipeline("calm", picture_pipeline("calm")), {"--frames", std::to_string(frames)});
    REQUIRE(run.wait() == 0);
    return run.report()["image_hash"].get<std::string>();
}

struct zombie {
    std::string stage;
    i32 pid = 0;
};

/// Each stage is stopped in turn and replaced; then `finish` gets the pid of the one that is still stopped.
template <typename F>
std::vector<zombie> make_zombies(run_fixture& run, std::mt19937_64& random, F&& finish) {
    std::vector<zombie> out;
    for (const char* stage : {"fragment", "vertex", "display", "geometry"}) {
        sleep_s(std::uniform_real_distribution<f64>(0, 0.05)(random));
        const i32 before = run.pid_of(stage);
        REQUIRE(before > 0);
        REQUIRE(::kill(before, SIGSTOP) == 0);
        REQUIRE(run.wait_until(
            [&] { return run.stage(stage)["state"] == "running" && run.pid_of(stage) != before; }, 10));
        REQUIRE(::kill(before, 0) == 0);  // it is still stopped
        // Its successor works meanwhile: the zombie's frames and slots have moved on when it continues.
        const auto frames_now = [&] { return run.ask({{"type", "ps"}})["pipeline"].value("frames", u64{0}); };
        const u64 then = frames_now();
        CHECK(run.wait_until([&] { return frames_now() > then + 40; }, 10));
        finish(before);
        out.push_back({stage, before});
    }
    return out;
}

std::map<i32, json> ends(const json& report) {
    std::map<i32, json> out;
    for (const json& r : report["recoveries"]) out[r["pid"].get<i32>()] = r;
    return out;
}

/// Ends the run, which continues until then: the number of frames that it makes meanwhile depends on the
/// machine.
void end_intact(run_fixture& run) {
    run.signal(SIGINT);
    CHECK(run.wait(90) == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["dead_letters"].empty());
    CHECK(r["image_hash"] == undisturbed_hash(r["frames"]));
    CHECK(run.leftovers() == "");
}

}  // namespace

TEST_CASE("a fenced process that continues late commits nothing and exits with its own exit code") {
    std::mt19937_64 random(test_seed());
    run_fixture run;
    run.start(run.pipeline("woken", picture_pipeline("woken", keys)), {},
              {"CAROUSEL_TEST_KILL_DELAY_MS=20000"});
    REQUIRE(run.wait_running());
    const std::vector<zombie> all = make_zombies(run, random, [&](i32 pid) {
        REQUIRE(::kill(pid, SIGCONT) == 0);
        CHECK(run.wait_until([&] { return ::kill(pid, 0) != 0; }, 10));
    });
    end_intact(run);
    std::map<i32, json> how = ends(run.report());
    for (const zombie& z : all) {
        CAPTURE(z.stage, z.pid, how[z.pid].dump());
        CHECK(how[z.pid]["ended"] == "exit code 71");
    }
}

TEST_CASE("a fenced process that is killed late causes no loss, and its buffers are returned") {
    std::mt19937_64 random(test_seed());
    run_fixture run;
    run.start(run.pipeline("late", picture_pipeline("late", keys)), {},
              {"CAROUSEL_TEST_KILL_DELAY_MS=20000"});
    REQUIRE(run.wait_running());
    const std::vector<zombie> all =
        make_zombies(run, random, [&](i32 pid) { REQUIRE(::kill(pid, SIGKILL) == 0); });
    end_intact(run);
    std::map<i32, json> how = ends(run.report());
    for (const zombie& z : all) {
        CAPTURE(z.stage, z.pid, how[z.pid].dump());
        CHECK(how[z.pid]["ended"] == "signal 9");
        CHECK(how[z.pid].contains("fenced_ns"));
    }
}

TEST_CASE("zombies that never resume are killed in the end while the run continues") {
    std::mt19937_64 random(test_seed());
    run_fixture run;
    run.start(run.pipeline("asleep", picture_pipeline("asleep", keys)), {},
              {"CAROUSEL_TEST_KILL_DELAY_MS=1500"});
    REQUIRE(run.wait_running());
    for (const zombie& z : make_zombies(run, random, [](i32) {}))
        CHECK(run.wait_until([&] { return ::kill(z.pid, 0) != 0; }, 10));
    end_intact(run);
}
