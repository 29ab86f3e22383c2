// A stage that takes the newest frame of another ring in addition to its own input (sampling_stage.cpp): if
// any process dies or is stopped at any step, every frame arrives once, with an intact newest frame.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/errors.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::string sampled_pipeline(const std::string& name, const std::string& keys = "",
                             const std::string& sampler_keys = "", const std::string& poses = "",
                             const std::string& sink = "") {
    return fmt::format(R"([pipeline]
name = "{0}"
device = "cpu"
{2}
[[stage]]
name = "numbers"
run = "{1}/carousel-test-side"
[[stage]]
name = "poses"
run = "{1}/carousel-test-side"
{4}
[[stage]]
name = "looker"
run = "{1}/carousel-test-side"
inputs = ["numbers"]
sampled = ["poses"]
{3}
[[stage]]
name = "sink"
run = "{1}/carousel-test-side"
inputs = ["looker"]
sink = true
{5}
[[stage]]
name = "watcher"
run = "{1}/carousel-test-side"
inputs = ["poses"]
sink = true
)",
                       name, programs(), keys, sampler_keys, poses, sink);
}

/// Checks that nothing is lost, repeated or torn, no frame is abandoned, and no stage has seen an invalid
/// frame.
void check_sampled(run_fixture& run, std::size_t deaths) {
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    check_undamaged(r);
    CHECK(r["dead_letters"].empty());
    CHECK(r["restarts"].get<std::size_t>() >= deaths);
    CHECK_THAT(run.log(), !contains("is not whole") && !contains("went back"));
    CHECK(r["not_comparable"] == "stage looker takes the newest frame of poses");
    CHECK(run.leftovers() == "");
}

u64 last_reported(const run_fixture& run) {
    u64 last = 0;
    std::ifstream(run.path("reported")) >> last;
    return last;
}

constexpr const char* dying = "die_at = 40\nmax_attempts = 2\n";

}  // namespace

TEST_CASE("a stage with a sampled input and its producer, killed at random, lose and tear nothing") {
    run_fixture run;
    run.start(
        run.pipeline("looked", sampled_pipeline("looked", "fps = 400\n", "", "",
                                                fmt::format("report_to = \"{}\"\n", run.path("reported")))));
    REQUIRE(run.wait_running());
    std::mt19937_64 random(test_seed());
    constexpr u32 kills = 80;
    constexpr const char* victims[] = {"looker", "looker",  "looker",  "poses",
                                       "poses",  "watcher", "numbers", "sink"};
    i32 last = 0;
    for (u32 done = 0; done < kills && run.running();) {
        const i32 pid = run.pid_of(victims[random() % 8]);
        if (pid > 0 && pid != last && ::kill(pid, SIGKILL) == 0) ++done, last = pid;
        sleep_s(static_cast<f64>(random() % 1000) / 25'000.0);
    }
    // Every live process has found a slot and takes newer frames: the dead keep none.
    const u64 seen = last_reported(run);
    CHECK(run.wait_until([&] { return last_reported(run) > seen + 100; }));
    run.signal(SIGINT);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    check_sampled(run, kills / 2);
    CHECK_THAT(run.log(), contains("hashes can't be compared: stage looker takes the newest frame of poses"));
    fmt::print("{} frames, {} restarts\n", run.report()["frames"].dump(), run.report()["restarts"].dump());
}

TEST_CASE("a stage that dies or stops at every step of a sampled lease loses and tears nothing") {
    const u64 seed = test_seed();
    CAPTURE(seed);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add_incarnations("looker", role::middle, "kill", set_up_points(), seed);
    for (const char* how : {"kill", "stop"})
        for (const crash_point point :
             {crash_point::latest_leased, crash_point::latest_read, crash_point::latest_released})
            for (const u64 nth : {1, 7, 30}) plan.add("looker", point, how, nth);
    plan.add_incarnations("poses", role::source, "kill", {}, seed + 1);
    plan.write();
    run.start(run.pipeline("aside", sampled_pipeline("aside", crash_keys)), {}, {plan.environment()});
    REQUIRE(run.wait_running());
    CHECK(run.wait_until([&] { return plan.pending_lines().empty() || !run.running(); }, 90));
    CHECK(plan.pending_lines() == "");
    CHECK(makes_progress(run));
    run.signal(SIGINT);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    check_sampled(run, plan.lines());
}

TEST_CASE("instances and standbys each have their own sampled inputs") {
    run_fixture run;
    run.start(run.pipeline("several",
                           sampled_pipeline("several", "fps = 400\n", "instances = 2\nstandby = true\n")));
    REQUIRE(run.wait_running());
    const auto members = [&] {
        u64 count = 0;
        const json ps = run.ask({{"type", "ps"}});
        for (const json& l : ps.value("links", json::array()))
            if (l["stage"] == "poses") count = l["readers"].size();
        return count;
    };
    CHECK(members() == 2);  // watcher and looker
    for (u32 k = 0; k < 6; ++k) {
        run.hit(k % 2 == 0 ? "looker.0" : "looker.1", SIGKILL);
        CHECK(run.wait_running());
        CHECK(makes_progress(run));
    }
    run.signal(SIGINT);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    check_sampled(run, 6);
}

TEST_CASE("a producer never waits for a stage that is stopped while it samples a frame") {
    run_fixture run;
    run.start(run.pipeline(
        "still", sampled_pipeline("still", "fps = 400\nlatest_lease_ms = 50\nframe_timeout_ms = 20000\n")));
    REQUIRE(run.wait_running());
    run.hit("looker", SIGSTOP);
    const auto frames_of = [&](const char* stage) { return run.stage(stage)["frames"].get<u64>(); };
    sleep_s(0.3);
    const u64 before = frames_of("watcher");
    CHECK(run.wait_until([&] { return frames_of("watcher") > before + 100; }, 10));
    run.hit("looker", SIGCONT);
    CHECK(makes_progress(run));
    run.signal(SIGINT);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    check_sampled(run, 0);
}

TEST_CASE("control: a newest frame that isn't whole is noticed") {
    run_fixture run;
    run.start(run.pipeline("torn", sampled_pipeline("torn", "fps = 200\n", "", "tear_at = 20\n",
                                                    "max_attempts = 1\n") +
                                       "trusts = true\n"),
              {"--frames", "100"});
    CHECK(run.wait(60) != 0);
    CHECK_THAT(run.log(), contains("is not whole"));
    CHECK_FALSE(run.report()["dead_letters"].empty());
}

TEST_CASE("a sampled input is drawn dashed, and the report has the frame used last") {
    run_fixture run;
    const std::string file = run.pipeline("shown", sampled_pipeline("shown", "fps = 200\n"));
    std::string out;
    REQUIRE(run.command({"run", file, "--dry-run"}, out) == 0);
    CHECK_THAT(out, contains("looker (latest)"));
    REQUIRE(run.command({"graph", file}, out) == 0);
    CHECK_THAT(out, contains("latest\", style=dashed"));
    run.start(file);
    REQUIRE(run.wait_running());
    CHECK(makes_progress(run));
    run.signal(SIGINT);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    check_sampled(run, 0);
    for (const json& s : run.report()["stages"])
        if (s["name"] == "looker") CHECK(s["last_frame_carried"]["sampled"]["poses"].get<u64>() > 20);
}

TEST_CASE("a given-up frame keeps its sampled frame and is replayed with it") {
    const std::string slow = "slow_ms = 8\n";  // slower than the pace: its ring has frames at all times
    run_fixture run;
    run.start(run.pipeline("letters", sampled_pipeline("letters", "fps = 250\n", dying) + slow),
              {"--frames", "80"});
    CHECK(run.wait(60) == exit_code::frames_abandoned);
    INFO(run.log());
    check_undamaged(run.report());
    const std::string folder = run.path("runtime") + "/carousel/letters/dead-letters/looker-40";
    const json dead_letter = json::parse(std::ifstream(folder + "/letter.json"));
    REQUIRE(dead_letter["sampled"].size() == 1);
    CHECK(dead_letter["sampled"][0]["stage"] == "poses");
    REQUIRE(dead_letter["sampled"][0]["file"] == "sampled-0.bin");
    const u64 sampled_number = dead_letter["sampled"][0]["ring_sequence"];
    std::string out;
    CHECK(run.command({"replay", "--dead-letter", "40"}, out) == exit_code::stage_exception);
    CHECK_THAT(
        out, contains(fmt::format("dying as configured, next to frame {}, which is whole", sampled_number)));
    CHECK(run.command({"replay", "--dead-letter", "40", "--prefix", "env SIDE_MENDED=1"}, out) == 0);
    // A dead letter whose copy is truncated must not be replayed.
    std::filesystem::resize_file(folder + "/sampled-0.bin", 1000);
    CHECK(run.command({"replay", "--dead-letter", "40"}, out) == exit_code::usage);
    CHECK_THAT(out, contains("sampled-0.bin ends at 1000 of") && contains("the dead letter is incomplete"));
}

TEST_CASE("a frame downstream of sampled inputs is saved with the numbers that it was made with") {
    run_fixture run;
    run.start(
        run.pipeline("behind", sampled_pipeline("behind", "fps = 250\n", "", "", dying) + "slow_ms = 8\n"),
        {"--frames", "80"});
    CHECK(run.wait(60) == exit_code::frames_abandoned);
    INFO(run.log());
    std::string out;
    CHECK(run.command({"replay", "--dead-letter", "40"}, out) == exit_code::stage_exception);
    // It compares what its input's maker has noted with what the header contained.
    CHECK(run.command({"replay", "--dead-letter", "40", "--prefix", "env SIDE_MENDED=1"}, out) == 0);
    CHECK_THAT(out, contains("frame 40 of stage sink succeeded"));
}
