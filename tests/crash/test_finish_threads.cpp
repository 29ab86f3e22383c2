// A sink that finishes several frames at once: what its deaths leave of the frames that were finished and not
// committed, and which frame is charged for a hang or an exception in finish().
#include <fmt/format.h>

#include "core/errors.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

namespace {

constexpr const char* sink_keys = "finish_threads = 4\nfinish_ms = 3\n";

}  // namespace

TEST_CASE("a sink with several finish threads dies at every point, and no frame is lost or repeated") {
    const u64 seed = test_seed(), frames = 700;
    const std::string hash = undisturbed_hash(frames);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add_incarnations("sink", role::sink, "kill", {}, seed);
    plan.write();
    run.start(run.pipeline("several", number_pipeline("several", crash_keys, "", "", sink_keys)),
              {"--frames", std::to_string(frames)}, {plan.environment()});
    CHECK(run.wait(120) == 0);
    INFO(run.log());
    CHECK(plan.pending_lines() == "");
    check_whole(run, frames, hash, plan.lines());
}

TEST_CASE("of several frames in finish() the hanging one is found by its deadline") {
    run_fixture run;
    const std::string keys =
        "finish_threads = 4\nfinish_ms = 20\ndie_at = 21\ndie_how = \"hang_finish\"\ndie_incarnations = 1\n"
        "frame_timeout_ms = 1500\nin_flight = 6\n";
    run.start(run.pipeline("hangs", number_pipeline("hangs", "frame_timeout_ms = 30000\n", "", "", keys)),
              {"--frames", "80"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("finish() of a frame takes longer than frame_timeout_ms = 1500"));
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["dead_letters"].empty());
    CHECK(r["restarts"] == 1);
    CHECK(r["image_hash"] == undisturbed_hash(80));
}

TEST_CASE("an exception in one of several finish() calls gives up only the frame of that call") {
    run_fixture run;
    const std::string keys =
        "finish_threads = 4\nfinish_ms = 3\ndie_at = 30\ndie_how = \"throw_finish\"\nmax_attempts = 2\n";
    run.start(run.pipeline("throws", number_pipeline("throws", "", "", "", keys)), {"--frames", "90"});
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("finish of frame 30 threw: as told"));
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == 90);
    REQUIRE(r["dead_letters"].size() == 1);
    CHECK(r["dead_letters"][0]["ring_sequence"] == 30);
    CHECK(r["dead_letters"][0]["stage"] == "sink");
    CHECK(run.leftovers() == "");
}
