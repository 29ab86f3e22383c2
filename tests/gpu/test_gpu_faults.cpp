// Faults of the device in one stage: contained to it, replaced, and the pictures equal those of a run without
// faults.
#include <fmt/format.h>

#include <csignal>

#include "core/errors.hpp"
#include "tests/gpu/gpu_run.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

void check_whole(run_fixture& run, const std::string& hash) {
    const json r = run.report();
    REQUIRE(r.contains("image_hash"));
    check_undamaged(r);
    CHECK(r["image_hash"] == hash);
    for (const json& s : r["stages"])
        if (s["name"] != "middle") CHECK(s["restarts"] == 0);
    CHECK(run.leftovers() == "");
}

}  // namespace

TEST_CASE("a fault of the device in one stage is contained to it") {
    const std::string hash = undisturbed_device_hash(400);
    for (const char* how : {"illegal", "trap", "misaligned", "memory"}) {
        CAPTURE(how);
        run_fixture run;
        device_keys keys;
        keys.pipeline = "fps = 200\n";
        keys.middle = fmt::format("die_at = 100\ndie_how = \"{}\"\n", how);
        run.start(run.pipeline("faults", device_pipeline("faults", keys)), {"--frames", "400"});
        CHECK(run.wait() == 0);
        INFO(run.log());
        check_whole(run, hash);
        CHECK(run.report()["restarts"] == 1);
        CHECK(run.report()["dead_letters"].empty());
    }
}

TEST_CASE("a kernel that never ends is found at its deadline") {
    const std::string hash = undisturbed_device_hash(400);
    run_fixture run;
    device_keys keys;
    keys.pipeline = "fps = 200\nframe_timeout_ms = 500\n";
    keys.middle = "die_at = 100\ndie_how = \"endless\"\n";
    run.start(run.pipeline("endless", device_pipeline("endless", keys)), {"--frames", "400"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, hash);
    CHECK(run.report()["restarts"] == 1);
}

TEST_CASE("a frame that faults the device each time is given up and reaches the sink void") {
    run_fixture run;
    device_keys keys;
    keys.middle = "die_at = 100\ndie_how = \"illegal\"\ndie_incarnations = 1000\nmax_attempts = 2\n";
    run.start(run.pipeline("poison", device_pipeline("poison", keys)), {"--frames", "300"});
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("dead_letters"));
    CHECK(r["frames"] == 300);
    check_undamaged(r);
    REQUIRE(r["dead_letters"].size() == 1);
    CHECK(r["dead_letters"][0]["ring_sequence"] == 100);
}

TEST_CASE("a stage that is stopped with work on the device is replaced, and its work has no effect") {
    const std::string hash = undisturbed_device_hash(600);
    run_fixture run;
    device_keys keys;
    keys.pipeline = "fps = 200\nframe_timeout_ms = 500\n";
    keys.middle = "hold_at = 150\nhold_ms = 400\n";  // the device is busy for it when it is stopped
    run.start(run.pipeline("stopped", device_pipeline("stopped", keys)), {"--frames", "600"});
    REQUIRE(run.wait_running());
    REQUIRE(run.wait_until([&] { return taken_at(run.log(), "middle", 150) != 0; }));
    run.hit("middle", SIGSTOP);
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, hash);
    CHECK(run.report()["restarts"] == 1);
}

TEST_CASE("a source on a GPU ends its stream where it declares it, under kills") {
    const std::string hash = undisturbed_device_hash(600);
    const std::vector<std::string> killed = GENERATE(
        std::vector<std::string>{}, std::vector<std::string>{"middle", "numbers", "sink", "numbers"});
    run_fixture run;
    device_keys keys;
    keys.pipeline = "fps = 200\n";
    keys.source = "ends_at = 600\n";
    run.start(run.pipeline("ends", device_pipeline("ends", keys)), {});
    REQUIRE(run.wait_running());
    for (const std::string& stage : killed) {
        run.hit(stage, SIGKILL);
        REQUIRE(run.wait_running());
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("image_hash"));
    check_undamaged(r);
    CHECK(r["frames"] == 600);
    CHECK(r["ended_by"] == "numbers");
    CHECK(r["image_hash"] == hash);
    CHECK(r["restarts"] == killed.size());
    CHECK(run.leftovers() == "");
}

TEST_CASE("a write beyond a slot on a GPU in finish() ends its stage before the frame is committed") {
    const std::string hash = undisturbed_device_hash(400);
    const int threads = GENERATE(1, 3);
    CAPTURE(threads);
    run_fixture run;
    device_keys keys;
    keys.guard = "canary";
    keys.middle = fmt::format("finishers = {}\nwild_write_at = 120\n", threads);
    run.start(run.pipeline("wild_writes", device_pipeline("wild_writes", keys)), {"--frames", "400"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, hash);
    CHECK(run.report()["restarts"] == 1);
    CHECK_THAT(run.log(),
               contains("frame 120: a write beyond its slot in the ring middle, after plane value, "
                        "104 bytes after its end"));
}

TEST_CASE("instances on a GPU that fill one ring plant each frame's canary") {
    const std::string hash = undisturbed_device_hash(600);
    run_fixture run;
    device_keys keys;
    keys.pipeline = "fps = 200\n";
    keys.guard = "canary";
    keys.middle = "instances = 2\n";
    run.start(run.pipeline("shared", device_pipeline("shared", keys)), {"--frames", "600"});
    REQUIRE(run.wait_running());
    const json first = run.stages()[1];  // its successor's pattern is another than that of the one that stays
    REQUIRE(::kill(first["pid"].get<i32>(), SIGKILL) == 0);
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, hash);
    CHECK(run.report()["restarts"] == 1);
}

TEST_CASE("control: without canaries the same write on a GPU is not detected") {
    run_fixture run;
    device_keys keys;
    keys.guard = "off";
    keys.middle = "finishers = 1\nwild_write_at = 120\n";
    run.start(run.pipeline("unseen", device_pipeline("unseen", keys)), {"--frames", "400"});
    CHECK(run.wait() == 0);
    CHECK(run.report()["restarts"] == 0);
}
