// Stages that replay the work of their frames as CUDA graphs: the frames are the same as without graphs, also
// under kills; work that differs between frames is refused.
#include <csignal>

#include "tests/gpu/gpu_run.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

device_keys alike(const std::string& pipeline) {
    return {.pipeline = "graphs = \"on\"\n" + pipeline,
            .source = "same_work = true\n",
            .middle = "same_work = true\n",
            .sink = "same_work = true\n"};
}

void check_whole(run_fixture& run, u64 frames) {
    const json r = run.report();
    REQUIRE(r.contains("image_hash"));
    check_undamaged(r);
    CHECK(r["frames"] == frames);
    CHECK(r["dead_letters"].empty());
    CHECK(r["image_hash"] == undisturbed_device_hash(frames));
    CHECK(run.leftovers() == "");
}

}  // namespace

TEST_CASE("frames that are played as graphs are those of an undisturbed run, under kills, too") {
    run_fixture run;
    run.start(run.pipeline("graphs", device_pipeline("graphs", alike("fps = 400\n"))), {"--frames", "1600"});
    REQUIRE(run.wait_running());
    for (const char* victim : {"middle", "numbers", "sink", "middle"}) {
        sleep_s(0.5);
        if (run.running()) run.hit(victim, SIGKILL);
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("replays its work as CUDA graphs"));
    check_whole(run, 1600);
    CHECK(run.report()["deaths"] >= 3);
}

TEST_CASE("a stream that ends does so in a stage that plays its frames as graphs, too") {
    run_fixture run;
    device_keys keys = alike("");
    keys.source += "ends_at = 500\n";
    run.start(run.pipeline("ending", device_pipeline("ending", keys)), {});
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 500);
}

TEST_CASE("work that changes ends the stage with the frame's number and the difference") {
    run_fixture run;
    device_keys keys = alike("fps = 400\n");
    keys.middle += "changes_at = 300\n";
    run.start(run.pipeline("changes", device_pipeline("changes", keys)), {"--frames", "600"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 600);
    CHECK_THAT(run.log(), contains("process of frame 3"));
    CHECK_THAT(
        run.log(),
        contains(
            "its work differs from the first frame's, although configure() declares same_work: launch 2 is "
            "make_number (2 x 1 x 1 blocks"));
    CHECK(run.report()["restarts"] >= 1);
}
