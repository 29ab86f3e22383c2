#pragma once
// Requests writes into their inputs from stages of a picture pipeline, one after the other.
#include <fmt/format.h>

#include <random>
#include <set>

#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

using nlohmann::json;

inline std::string undisturbed_hash(const std::string& name, u64 frames) {
    run_fixture quiet;
    quiet.start(quiet.pipeline(name, picture_pipeline(name)), {"--frames", std::to_string(frames)});
    REQUIRE(quiet.wait(120) == 0);
    return quiet.report()["image_hash"];
}

/// The pids of the requested writers, in turn; each is replaced before the next request.
inline std::set<i32> scribble(run_fixture& run, u32 times, u64 seed) {
    std::mt19937_64 random(seed);
    std::set<i32> guilty;
    while (guilty.size() < times && run.running()) {
        constexpr const char* readers[] = {"vertex", "fragment", "display"};
        const std::string stage = readers[random() % 3];
        const i32 before = run.pid_of(stage);
        const json answer = run.ask({{"type", "inject"}, {"stage", stage}, {"fault", "scribble-input"}});
        if (!answer.is_object() || !answer.value("ok", false)) {  // this process has just been replaced
            sleep_s(0.005);
            continue;
        }
        const bool replaced = run.wait_until(
            [&] { return run.pid_of(stage) != before && run.stage(stage)["state"] == "running"; }, 10);
        CHECK(replaced);
        guilty.insert(before);
    }
    return guilty;
}

/// Checks that only the requested writers died, each of its own write, and that the place is reported.
inline void check_blame(const json& report, const std::set<i32>& guilty) {
    std::set<i32> dead;
    for (const json& r : report["recoveries"]) {
        if (!r.contains("how")) continue;  // the stage had processed every frame, and has exited
        CAPTURE(r.dump());
        dead.insert(r["pid"].get<i32>());
        CHECK(r["how"] == "signal 11 (SIGSEGV), injected");
        const std::string ring = r["seat"] == "vertex"     ? "geometry"
                                 : r["seat"] == "fragment" ? "vertex"
                                                           : "fragment";
        const std::string where = r.value("wild_write", "");
        CHECK_THAT(where,
                   contains("a write into its input ring " + ring + ", frame ") && contains(", plane "));
    }
    CHECK(dead == guilty);
}

inline void check_scribbles(const std::string& name, u32 times, u64 frames, u32 fps) {
    const std::string hash = undisturbed_hash(name, frames);
    run_fixture run;
    run.start(run.pipeline(name, picture_pipeline(name, fmt::format("fps = {}\n", fps))),
              {"--frames", std::to_string(frames)});
    REQUIRE(run.wait_running());
    const std::set<i32> guilty = scribble(run, times, test_seed());
    CHECK(guilty.size() == times);
    CHECK(run.wait(120) == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == frames);
    CHECK(r["image_hash"] == hash);
    CHECK(r["dead_letters"].empty());
    check_blame(r, guilty);
    CHECK(run.leftovers() == "");
}

}  // namespace carousel::test
