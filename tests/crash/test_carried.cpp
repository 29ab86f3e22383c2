// The data of a frame in addition to its payload passes through rings, kills, a recording and its replay: the
// sink checks each frame and throws if something is missing (tests/crash/number_stage.cpp).
#include <csignal>

#include "core/errors.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::string stage_of(const std::string& name, const std::string& more) {
    return fmt::format("[[stage]]\nname = \"{}\"\nrun = \"{}/carousel-test-number\"\ncarries = true\n{}",
                       name, programs(), more);
}

std::string pipeline_of(const std::string& name, const std::string& source, const std::string& more = "") {
    return fmt::format("[pipeline]\nname = \"{}\"\ndevice = \"cpu\"\nfps = 200\n{}{}", name, source, more);
}

}  // namespace

TEST_CASE("metadata, capture time and used extents come through kills, a recording and its replay") {
    CAROUSEL_NEEDS_EXTRAS();
    run_fixture run;
    run.start(run.pipeline("rec", pipeline_of("rec", stage_of("numbers", ""),
                                              stage_of("middle", "inputs = [\"numbers\"]\n") +
                                                  stage_of("sink", "inputs = [\"middle\"]\nsink = true\n") +
                                                  "[link.middle]\nrecord = true\n")),
              {"--frames", "300"});
    REQUIRE(run.wait_running());
    for (const char* victim : {"middle", "numbers", "record", "sink", "middle"}) {
        sleep_s(0.15);
        if (run.pid_of(victim) > 0) run.hit(victim, SIGKILL);
    }
    CHECK(run.wait(60) == 0);
    {
        INFO(run.log());
        const json r = run.report();
        check_undamaged(r);
        CHECK(r["frames"] == 300);
        CHECK(r["dead_letters"].empty());
        for (const json& stage : r["stages"]) {
            if (stage["name"] == "numbers" || stage["name"] == "middle") {
                const json& carried = stage.at("last_frame_carried");
                CHECK(carried["frame"] == 299);
                CHECK(carried["capture_clock"] == "live");
                CHECK_FALSE(carried["metadata"].empty());
                CHECK(carried["used"].contains("list"));
            }
            if (stage["name"] != "sink") continue;
            CHECK(stage["from_capture_ms"]["p50"].get<f64>() >= 5);
            CHECK(stage["from_capture_ms"]["p50"].get<f64>() >= stage["end_to_end_ms"]["p50"].get<f64>());
        }
    }
    // The recording has them, bit for bit; the age of a recorded frame's capture is meaningless.
    run.start(
        run.pipeline("play", pipeline_of("play",
                                         "[[stage]]\nname = \"tape\"\nrun = \"carousel-replay\"\nfile = "
                                         "\"rec.mcap\"\n",
                                         stage_of("sink", "inputs = [\"tape\"]\nsink = true\n"))));
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == 300);
    for (const json& stage : r["stages"]) CHECK_FALSE(stage.contains("from_capture_ms"));
    CHECK(run.leftovers() == "");
}

TEST_CASE("a frame that is given up is saved with all its data, and replay gives it all to its stage") {
    run_fixture run;
    run.start(
        run.pipeline("kept", pipeline_of("kept", stage_of("numbers", ""),
                                         stage_of("middle", "inputs = [\"numbers\"]\n") +
                                             stage_of("sink",
                                                      "inputs = [\"middle\"]\nsink = true\ndie_at = 30\n"
                                                      "die_how = \"abort\"\nmax_attempts = 2\n"))),
        {"--frames", "60"});
    CHECK(run.wait(60) == exit_code::frames_abandoned);
    INFO(run.log());
    REQUIRE(run.report()["dead_letters"].size() == 1);
    std::string out;
    // as it died: it has found its frame intact before
    CHECK(run.command({"replay", "--dead-letter", "30", "-p", "kept"}, out) == -SIGABRT);
    INFO(out);
    CHECK_THAT(out, contains("dying as configured: abort"));
}
