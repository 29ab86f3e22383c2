// Counters of 24 bits (generations, laps, the kept part of a version, epochs) and a version's 36 bits wrap
// around in runs of hours to years. Here all of them begin just below their maximum, so that the first frames
// and deaths of a short run make each wrap around.
#include <fmt/format.h>

#include <csignal>

#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

const std::vector<std::string> near_overflow{"CAROUSEL_TEST_COUNTERS=near-their-ends"};

std::string slow(const std::string& name, const std::string& keys = "") {
    return number_pipeline(name, "fps = 60\nsupervisor_grace_s = 20\n", keys, keys, keys);
}

}  // namespace

TEST_CASE("kills while all counters wrap around lose, repeat and tear nothing") {
    // 5 s; the counters wrap around within the first 40 frames and the first three deaths of a seat
    constexpr u64 frames = 300;
    const std::string keys = GENERATE("", "standby = true\n");
    CAPTURE(keys);
    std::mt19937_64 random(test_seed());
    const std::string hash = undisturbed_hash(frames);
    run_fixture run;
    const std::string file = run.pipeline("round", slow("round", keys));
    const std::vector<std::string> args{"--frames", std::to_string(frames)};
    run.start(file, args, near_overflow);
    REQUIRE(run.wait_running());
    u32 kills = 0;
    const std::array stages{"numbers", "middle", "sink"};
    for (int k = 0; k < 24; ++k) {
        for (const char* stage : stages) {
            // No stage is killed in the supervisor's own turn: with all stages dead at once there is nothing
            // to take over.
            if (k == 8) break;
            const i32 pid = random() % 2 == 0 ? run.pid_of(stage) : 0;
            kills += pid > 0 && ::kill(pid, SIGKILL) == 0 ? 1 : 0;
        }
        if (k == 8) {
            REQUIRE(run.wait_running());
            run.signal(SIGKILL);
            REQUIRE(run.wait() == -SIGKILL);
            run.start(file, args, near_overflow);
            REQUIRE(run.wait_running());
        }
        sleep_s(0.02 + static_cast<f64>(random() % 60) / 1000);
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, frames, hash, 6);
    fmt::print("{} kills, {} deaths at {}\n", kills, run.report()["deaths"].dump(),
               run.report()["kills_at"].dump());
    CHECK(run.report()["deaths"].get<u32>() > 12);  // three of each seat, and more
    CHECK(run.report()["taken_over"] == 1);
}

TEST_CASE("a run that is stopped while its laps come round ends with every frame that was begun") {
    run_fixture run;
    run.start(run.pipeline("stopped", slow("stopped")), {}, near_overflow);
    REQUIRE(run.wait_running());
    REQUIRE(run.wait_until([&] {
        return run.ask({{"type", "ps"}})["pipeline"].value("frames", u64{0}) > 15;
    }));
    std::string out;
    CHECK(run.command({"down", "-p", "stopped"}, out) == 0);
    CHECK(run.wait() == 0);
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"].get<u64>() < 200);
    CHECK(r["image_hash"] == undisturbed_hash(r["frames"]));
    CHECK(run.leftovers() == "");
}
