#pragma once
// Requests writes into the control block from stages of a picture pipeline, one after the other.
#include <fmt/format.h>

#include <random>
#include <set>

#include "tests/crash/run_fixture.hpp"
#include "tests/crash/scribbles.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

/// The pids of the requested writers, in turn; `replaced`: waits for the replacement of each before the next
/// request.
inline std::set<i32> scribble_block(run_fixture& run, u32 times, u64 seed, bool replaced = true) {
    std::mt19937_64 random(seed);
    std::set<i32> guilty;
    for (u32 reported = 0; reported < times && run.running();) {
        constexpr const char* writers[] = {"geometry", "vertex", "fragment", "display"};
        const std::string stage = writers[random() % 4];
        const i32 before = run.pid_of(stage);
        const json answer = run.ask({{"type", "inject"}, {"stage", stage}, {"fault", "scribble-control"}});
        if (!answer.is_object() || !answer.value("ok", false)) {  // this process has just been replaced
            sleep_s(0.005);
            continue;
        }
        ++reported;
        guilty.insert(before);
        if (replaced)
            CHECK(run.wait_until(
                [&] { return run.pid_of(stage) != before && run.stage(stage)["state"] == "running"; }, 10));
        else
            sleep_s(0.02);
    }
    return guilty;
}

/// Checks that only the requested writers died, each of its own write, and that the place is reported.
inline void check_block_blame(const json& report, const std::set<i32>& guilty) {
    std::set<i32> dead;
    for (const json& r : report["recoveries"]) {
        if (!r.contains("how")) continue;  // the stage had processed every frame, and has exited
        CAPTURE(r.dump());
        dead.insert(r["pid"].get<i32>());
        CHECK(r["how"] == "signal 11 (SIGSEGV), injected");
        const std::string where = r.value("wild_write", "");
        const bool reported = where.starts_with("a write into the control block: ") ||
                              where.starts_with("a write into the headers of the ring ") ||
                              where.starts_with("a write after the headers of the ring ");
        CHECK(reported);
    }
    CHECK(dead == guilty);
}

/// `guard`: a value of CAROUSEL_TEST_BLOCK_GUARD; "": the guard that this CPU has.
inline void check_block_scribbles(const std::string& name, u32 times, u64 frames, u32 fps,
                                  const std::string& guard) {
    const std::string hash = undisturbed_hash(name, frames);
    run_fixture run;
    run.start(run.pipeline(name, picture_pipeline(name, fmt::format("fps = {}\n", fps))),
              {"--frames", std::to_string(frames)},
              guard.empty() ? std::vector<std::string>{}
                            : std::vector<std::string>{"CAROUSEL_TEST_BLOCK_GUARD=" + guard});
    REQUIRE(run.wait_running());
    const std::set<i32> guilty = scribble_block(run, times, test_seed());
    CHECK(guilty.size() == times);
    CHECK(run.wait(240) == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == frames);
    CHECK(r["image_hash"] == hash);
    CHECK(r["dead_letters"].empty());
    CHECK(r["repairs"].empty());
    CHECK(r["words_repaired"] == 0);
    check_block_blame(r, guilty);
    CHECK(run.leftovers() == "");
}

}  // namespace carousel::test
