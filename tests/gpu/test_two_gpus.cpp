// Instances of one stage on two GPUs: the frames are those of one, also when instances die; a GPU that does
// not exist is refused with its position in the file.
#include <csignal>

#include "core/errors.hpp"
#include "supervisor/plan/device_choice.hpp"
#include "tests/gpu/gpu_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

device_keys on_both(const std::string& pipeline, const char* second = "cuda:1") {
    device_keys keys;
    keys.pipeline = pipeline;
    keys.middle = std::string("instances = 2\ndevice = [\"cuda:0\", \"") + second + "\"]\n";
    return keys;
}

}  // namespace

TEST_CASE("instances on two GPUs deliver the frames of one and report how they reach the rings") {
    if (supervisor::probe_machine(programs()).gpus.size() < 2) CAROUSEL_SKIP("there is no second GPU");
    const u64 frames = 1600;
    run_fixture run;
    run.start(run.pipeline("both", device_pipeline("both", on_both("fps = 400\n"))),
              {"--frames", std::to_string(frames)});
    REQUIRE(run.wait_running());
    CHECK(run.ask({{"type", "ps"}})["stages"][1]["device"] == "cuda:0");
    CHECK(run.ask({{"type", "ps"}})["stages"][2]["device"] == "cuda:1");
    sleep_s(2);
    if (run.running()) run.hit("middle.1", SIGKILL);
    sleep_s(0.5);
    if (run.running()) run.hit("middle.0", SIGKILL);
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["image_hash"] == undisturbed_device_hash(frames));
    CHECK(r["stages"][1]["device"] == "cuda:0+cuda:1");
    CHECK_THAT(run.log(), contains("rings on another GPU are reached "));
    CHECK(run.leftovers() == "");
}

TEST_CASE("a GPU of a list that isn't there is refused with its place") {
    run_fixture run;
    run.start(run.pipeline("absent", device_pipeline("absent", on_both("", "cuda:63"))), {"--frames", "10"});
    CHECK(run.wait() == exit_code::no_device);
    CHECK_THAT(run.log(),
               contains(".toml:") && contains("stage middle: device cuda:63: there is no such device"));
}
