#pragma once
// Requests writes past their own output slots from stages of a picture pipeline, one after the other.
#include <fmt/format.h>

#include <random>
#include <set>

#include "tests/crash/run_fixture.hpp"
#include "tests/crash/scribbles.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

/// The pids of the requested writers, in turn; `replaced`: waits for the replacement of each before the next
/// request.
inline std::set<i32> overrun(run_fixture& run, u32 times, u64 seed, bool replaced = true) {
    std::mt19937_64 random(seed);
    std::set<i32> guilty;
    for (u32 reported = 0; reported < times && run.running();) {
        constexpr const char* writers[] = {"geometry", "vertex", "fragment"};
        const std::string stage = writers[random() % 3];
        const i32 before = run.pid_of(stage);
        const json answer = run.ask({{"type", "inject"}, {"stage", stage}, {"fault", "overrun-output"}});
        if (!answer.is_object() || !answer.value("ok", false)) {  // it has just been replaced
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

/// The bytes after the slots of the pipeline's rings.
enum class guard_kind : u8 { gap, canary };

inline std::string keys_of(guard_kind kind) {
    std::string text;
    if (kind == guard_kind::canary)
        for (const char* ring : {"geometry", "vertex", "fragment"})
            text += fmt::format("[link.{}]\nguard = \"canary\"\n", ring);
    return text;
}

/// Checks that only the requested writers died, each of its own write, and that the place is reported.
inline void check_overrun_blame(const json& report, const std::set<i32>& guilty, guard_kind kind) {
    std::set<i32> dead;
    for (const json& r : report["recoveries"]) {
        if (!r.contains("how")) continue;  // it was done, and has left
        CAPTURE(r.dump());
        dead.insert(r["pid"].get<i32>());
        CHECK(r["how"] ==
              (kind == guard_kind::gap ? "signal 11 (SIGSEGV), injected" : "exit code 73, injected"));
        const std::string where = r.value("wild_write", "");
        CHECK_THAT(where, contains("an overrun of its slot in the ring " + r["seat"].get<std::string>() +
                                   ", frame ") &&
                              contains(", after plane "));
    }
    CHECK(dead == guilty);
}

inline void check_overruns(const std::string& name, u32 times, u64 frames, u32 fps,
                           guard_kind kind = guard_kind::gap) {
    const std::string hash = undisturbed_hash(name, frames);
    run_fixture run;
    run.start(run.pipeline(name, picture_pipeline(name, fmt::format("fps = {}\n", fps)) + keys_of(kind)),
              {"--frames", std::to_string(frames)});
    REQUIRE(run.wait_running());
    const std::set<i32> guilty = overrun(run, times, test_seed());
    CHECK(guilty.size() == times);
    CHECK(run.wait(120) == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == frames);
    CHECK(r["image_hash"] == hash);
    CHECK(r["dead_letters"].empty());
    check_overrun_blame(r, guilty, kind);
    CHECK(run.leftovers() == "");
}

}  // namespace carousel::test
