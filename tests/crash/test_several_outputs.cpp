// A fork with two outputs and a join downstream of it (fork_stage.cpp): if any process dies at any step, the
// join gets each frame once, intact, with number and square of the same frame.
#include <fmt/format.h>

#include <csignal>
#include <regex>
#include <set>

#include "core/errors.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/crash/fork_run.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::string calm_hash(u64 frames) {
    run_fixture calm;
    calm.start(calm.pipeline("calm", forked("calm")), {"--frames", std::to_string(frames)});
    CHECK(calm.wait(60) == 0);
    INFO(calm.log());
    const json r = calm.report();
    check_undamaged(r);
    CHECK(r["restarts"] == 0);
    return r["image_hash"];
}

std::string refused(const std::string& text) {
    run_fixture run;
    std::string out;
    CHECK(run.command({"validate", run.pipeline("bad", text)}, out) == exit_code::usage);
    return out;
}

}  // namespace

TEST_CASE("a fork, its join and their source, killed at random, lose, repeat and tear nothing") {
    run_fixture run;
    run.start(run.pipeline("forked", forked("forked", "fps = 400\n")));
    REQUIRE(run.wait_running());
    std::mt19937_64 random(test_seed());
    constexpr u32 kills = 80;
    constexpr const char* victims[] = {"fork", "fork", "join", "numbers"};
    i32 last = 0;
    for (u32 done = 0; done < kills && run.running();) {
        const i32 pid = run.pid_of(victims[random() % 4]);
        if (pid > 0 && pid != last && ::kill(pid, SIGKILL) == 0) ++done, last = pid;
        sleep_s(static_cast<f64>(random() % 1000) / 25'000.0);
    }
    run.signal(SIGINT);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    check_whole(run, r["frames"], calm_hash(r["frames"]), kills / 2);
    fmt::print("{} frames, {} restarts\n", r["frames"].dump(), r["restarts"].dump());
}

TEST_CASE("a fork that dies between its outputs, at every step, loses, repeats and tears nothing") {
    const u64 seed = test_seed();
    CAPTURE(seed);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add_incarnations("fork", role::middle, "kill", {}, seed);
    // One of every two passages is that of the second output.
    for (const crash_point point : {crash_point::slot_filled, crash_point::slot_ready})
        for (const u64 nth : {21, 22}) plan.add("fork", point, "kill", nth);
    plan.add_incarnations("join", role::sink, "kill", {}, seed + 1);
    plan.write();
    run.start(run.pipeline("steps", forked("steps", crash_keys)), {}, {plan.environment()});
    REQUIRE(run.wait_running());
    CHECK(run.wait_until([&] { return plan.pending_lines().empty() || !run.running(); }, 60));
    CHECK(plan.pending_lines() == "");
    run.signal(SIGINT);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    check_whole(run, r["frames"], calm_hash(r["frames"]), plan.lines());
}

TEST_CASE("a write beyond a slot of the second output ends its writer, and its ring is named") {
    for (const char* guard : {"gap", "canary"}) {
        CAPTURE(guard);
        run_fixture run;
        const std::string more = fmt::format("[link.fork.square]\nguard = \"{}\"\n", guard);
        run.start(run.pipeline("over", forked("over", "", "overrun = 20\nmax_attempts = 2\n", more)),
                  {"--frames", "60"});
        CHECK(run.wait(60) == exit_code::frames_abandoned);
        INFO(run.log());
        const json r = run.report();
        check_undamaged(r);
        CHECK(r["dead_letters"].size() == 1);
        CHECK(r["dead_letters"][0]["ring_sequence"] == 20);
        CHECK_THAT(run.log(), contains("ring fork.square, frame 20, after plane list"));
    }
}

TEST_CASE("injected wild writes hit each output and input of a stage and name their rings") {
    struct wild_write {
        const char *stage, *fault, *what;
    };
    const wild_write s = GENERATE(wild_write{"fork", "overrun-output", "an overrun of its slot in the ring "},
                                  wild_write{"join", "scribble-input", "a write into its input ring "});
    CAPTURE(s.stage);
    run_fixture run;
    run.start(run.pipeline("wild_writes", forked("wild_writes", "fps = 200\n")), {"--frames", "2000"});
    REQUIRE(run.wait_running());
    std::set<std::string> hit;
    // Which of the two it is appears random: all of sixteen are the same once in 30,000 times. Each comes
    // after a frame of that process, so that none costs a frame two attempts.
    constexpr u32 wanted = 16;
    for (u32 reported = 0; reported < wanted && run.running();) {
        const i32 before = run.pid_of(s.stage);
        CHECK(run.wait_until(
            [&] {
                const json row = run.stage(s.stage);
                return row.contains("commits") && row["commits"].is_number() && row["commits"] > 0;
            },
            10));
        const json answer = run.ask({{"type", "inject"}, {"stage", s.stage}, {"fault", s.fault}});
        if (!answer.is_object() || !answer.value("ok", false)) {
            sleep_s(0.005);
            continue;
        }
        ++reported;
        CHECK(run.wait_until(
            [&] { return run.pid_of(s.stage) != before && run.stage(s.stage)["state"] == "running"; }, 10));
    }
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["dead_letters"].empty());
    u32 deaths = 0;
    for (const json& death : r["recoveries"]) {
        if (!death.contains("how")) continue;
        ++deaths;
        CHECK(death["seat"] == s.stage);
        const std::string where = death.value("wild_write", "");
        CHECK_THAT(where, contains(s.what));
        for (const char* ring : {"fork, ", "fork.square, "})
            if (where.find(ring) != std::string::npos) hit.insert(ring);
    }
    CHECK(deaths == wanted);
    CHECK(hit.size() == 2);
}

TEST_CASE("the ring of a second output is shown by its name") {
    run_fixture run;
    const std::string file = run.pipeline(
        "shown", forked("shown", "fps = 50\n", "", "[link.fork.square]\nwindow = 11\nguard = \"canary\"\n"));
    std::string out;
    REQUIRE(run.command({"run", file, "--dry-run"}, out) == 0);
    CHECK_THAT(out, contains("writes number: test.number {value: u64[1]}") &&
                        contains("writes square: test.square") && contains("ring fork.square") &&
                        contains("fork, fork.square"));
    REQUIRE(run.command({"graph", file}, out) == 0);
    CHECK_THAT(out, contains("fork.square: test.square"));
    run.start(file);
    REQUIRE(run.wait_running());
    const json ps = run.ask({{"type", "ps"}});
    REQUIRE(ps["links"].size() == 3);
    CHECK(ps["links"][1]["stage"] == "fork");
    CHECK(ps["links"][2]["stage"] == "fork.square");
    CHECK(ps["links"][2]["window"] == 11);
    CHECK(ps["links"][2]["guard"] == "canary");
    CHECK(ps["links"][1]["guard"] == "gap");
    CHECK(run.wait_until([&] { return run.stage("fork")["output_guarded"] == true; }, 5));
    REQUIRE(run.command({"graph", "--live"}, out) == 0);  // each of its rings has its own count
    CHECK(std::regex_search(out, std::regex(R"(s1 -> s2 \[label="test\.number\\n.*lag \d+"\])")));
    CHECK(
        std::regex_search(out, std::regex(R"(s1 -> s2 \[label="fork\.square: test\.square\\n.*lag \d+"\])")));
    run.signal(SIGINT);
    CHECK(run.wait(60) == 0);
    const json r = run.report();
    check_undamaged(r);
    bool reported = false;
    for (const json& m : r["memory"])
        reported = reported || (m["of"] == "ring fork.square" && m["guard"] == "canary");
    CHECK(reported);
    for (const json& s : r["stages"])
        if (s["name"] == "fork") {
            CHECK(s["more_outputs"][0]["ring"] == "fork.square");
            CHECK(s["more_outputs"][0]["window"] == 11);
            CHECK(s["last_frame_carried"]["metadata"].contains("fork"));
            CHECK(s["last_frame_carried"]["used"].empty());
            CHECK(s["more_outputs"][0]["last_frame_carried"]["metadata"].contains("fork"));
            CHECK(s["more_outputs"][0]["last_frame_carried"]["used"].contains("list"));
        }
}

TEST_CASE("outputs that can't be are refused in one sentence") {
    CHECK_THAT(refused(forked("bad", "", "outputs = 5\n")),
               contains("stage \"fork\": 5 outputs are named, but at most 4"));
    CHECK_THAT(refused(forked("bad", "", "outputs = 3\n")),
               contains("stage \"fork\" produces \"more-2\" (test.square), which no stage reads; add "
                        "\"fork.more-2\" to the inputs of a sink"));
    CHECK_THAT(
        refused(forked("bad", "", "outputs = 1\n")),
        contains("stage \"join\" reads \"fork.square\", but stage \"fork\" has no output \"square\"; its "
                 "outputs: number"));
}

TEST_CASE("the ring of a second output is recorded by its name") {
    CAROUSEL_NEEDS_EXTRAS();
    run_fixture run;
    // In addition to the join a stage reads the recorded ring, as another does when it is played.
    run.start(
        run.pipeline("taped", forked("taped", "", "", number_stage("look", "fork.square", "sink = true\n"))),
        {"--frames", "100", "--record", "fork.square", "--record-to", run.path("square.mcap")});
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == 100);
    json sampled_hash;
    for (const json& s : r["sinks"])
        if (s["stage"] == "look") sampled_hash = s["image_hash"];
    REQUIRE(sampled_hash.is_string());
    const std::string again = fmt::format(R"([pipeline]
name = "again"
device = "cpu"
[[stage]]
name = "tape"
run = "carousel-replay"
file = "{}"
ring = "fork.square"
[[stage]]
name = "sink"
run = "{}/carousel-test-number"
inputs = ["tape"]
sink = true
)",
                                          run.path("square.mcap"), programs());
    run.start(run.pipeline("again", again));
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    CHECK(run.report()["frames"] == 100);
    CHECK(run.report()["image_hash"] == sampled_hash);
}

TEST_CASE("a frame that a fork or its join gives up is replayed with all its data") {
    constexpr const char* dying = "die_at = 20\nmax_attempts = 2\n";
    const auto dies = [&](const std::string& stage) {
        return forked("letters", "", stage == "fork" ? dying : "", stage == "join" ? dying : "");
    };
    for (const std::string stage : {"fork", "join"}) {
        CAPTURE(stage);
        run_fixture run;
        run.start(run.pipeline("letters", dies(stage)), {"--frames", "60"});
        CHECK(run.wait(60) == exit_code::frames_abandoned);
        INFO(run.log());
        check_undamaged(run.report());
        std::string out;
        CHECK(run.command({"replay", "--dead-letter", "20"}, out) == exit_code::stage_exception);
        CHECK_THAT(out, contains(stage == "fork" ? "dying as configured, with a list of 200"
                                                 : "dying as configured"));
        // What the join compares: number, square, list and the metadata of both inputs.
        CHECK(run.command({"replay", "--dead-letter", "20", "--prefix", "env FORK_MENDED=1"}, out) == 0);
        CHECK_THAT(out, contains("frame 20 of stage " + stage + " succeeded"));
    }
}
