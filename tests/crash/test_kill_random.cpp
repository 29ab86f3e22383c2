// Stages killed at random moments, with real signals, while frames flow.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <set>

#include "tests/crash/crash_drive.hpp"
#include "tests/crash/crash_plan.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::string undisturbed_hash(const std::string& name, const std::string& text, u64 frames) {
    run_fixture quiet;
    quiet.start(quiet.pipeline(name, text), {"--frames", std::to_string(frames)});
    REQUIRE(quiet.wait(120) == 0);
    const json r = quiet.report();
    CHECK(r["restarts"] == 0);
    return r["image_hash"];
}

/// Ends a run without a frame limit, as Ctrl-C does; checks that it is intact, with the pictures of a run
/// without faults of as many frames.
void end_intact(run_fixture& run, const std::string& name, const std::string& undisturbed) {
    run.signal(SIGINT);
    CHECK(run.wait(120) == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    check_undamaged(r);
    CHECK(r["image_hash"] == undisturbed_hash(name, undisturbed, r["frames"]));
    CHECK(run.leftovers() == "");
}

/// Kills until the run is over or `kills` were made; returns how many. No process is killed twice: a dying
/// process may be listed for a moment longer on a busy machine.
u32 kill_at_random(run_fixture& run, u32 kills, u64 seed, f64 pause_s) {
    std::mt19937_64 random(seed);
    u32 done = 0;
    std::deque<i32> hit;  // the last ones: pids are reused
    while (done < kills && run.running()) {
        std::vector<json> all = run.stages();
        std::erase_if(all, [](const json& s) { return !s["pid"].is_number(); });
        if (all.empty()) continue;
        const i32 pid = all[random() % all.size()]["pid"];
        if (std::find(hit.begin(), hit.end(), pid) == hit.end() && ::kill(pid, SIGKILL) == 0) {
            ++done;
            hit.push_back(pid);
            if (hit.size() > 100) hit.pop_front();
        }
        sleep_s(pause_s * static_cast<f64>(random() % 1000) / 500.0);
    }
    return done;
}

}  // namespace

TEST_CASE("300 random kills over all stages lose, repeat and tear nothing") {
    constexpr u32 kills = 300;
    run_fixture run;
    run.start(run.pipeline("kills", picture_pipeline("kills", "fps = 400\n")));
    REQUIRE(run.wait_running());
    CHECK(kill_at_random(run, kills, test_seed(), 0.02) == kills);
    end_intact(run, "kills", picture_pipeline("kills"));
    const json r = run.report();
    CHECK(r["restarts"].get<u32>() >= kills - 4);
    fmt::print("kills at {}; fence {}\n", r["kills_at"].dump(), r["fence_ms"].dump());
}

TEST_CASE("three instances that share a group, killed at random, keep the order") {
    const auto text = [](const char* pace) {
        std::string t = picture_pipeline("workers", pace);
        t.insert(t.find("run = \"carousel-fragment\""), "instances = 3\n");
        return t;
    };
    run_fixture run;
    run.start(run.pipeline("workers", text("fps = 400\n")));
    REQUIRE(run.wait_running());
    CHECK(kill_at_random(run, 60, test_seed(), 0.02) == 60);
    end_intact(run, "workers", text(""));
}

TEST_CASE("stages that choose their depth by measurement, killed at random, lose no frame") {
    run_fixture run;
    run.start(run.pipeline("deep", picture_pipeline("deep", "fps = 300\n")), {},
              {"CAROUSEL_TEST_DEPTH_ON_CPU=1"});
    REQUIRE(run.wait_until(
        [&] {
            const std::vector<json> all = run.stages();
            return all.size() == 4 && std::all_of(all.begin(), all.end(), [](const json& s) {
                       return s["depth_reason"].is_string() && s["in_flight"].get<u32>() <= 16 &&
                              s["depth_reason"].get<std::string>().find("take turns") != std::string::npos;
                   });
        },
        20));
    CHECK(kill_at_random(run, 40, test_seed(), 0.02) == 40);
    end_intact(run, "deep", picture_pipeline("deep"));
    const json r = run.report();
    for (const json& s : r["stages"]) {
        CHECK(s["in_flight"] == 16);
        REQUIRE(s["depth"].size() == 1);
        REQUIRE(s["depth"][0].is_object());
        CHECK(s["depth"][0]["in_flight"].get<u32>() <= 16);
    }
}

TEST_CASE("rings with a window of one frame behave like wide ones under kills") {
    const auto narrow = [](const char* more) {
        return picture_pipeline("narrow", more) +
               "[link.geometry]\nwindow = 1\n[link.vertex]\nwindow = 1\n[link.fragment]\nwindow = 1\n";
    };
    run_fixture run;
    run.start(run.pipeline("narrow", narrow("fps = 100\n")));
    REQUIRE(run.wait_running());
    CHECK(kill_at_random(run, 30, test_seed(), 0.02) == 30);
    end_intact(run, "narrow", picture_pipeline("narrow"));
}

TEST_CASE("all stages are killed at the same time and restart, ten times") {
    run_fixture run;
    run.start(run.pipeline("all", picture_pipeline("all", "fps = 400\n")));
    std::set<i32> hit;  // a dying process may still be listed as running: each is killed once
    for (int k = 0; k < 10; ++k) {
        REQUIRE(run.wait_until(
            [&] {
                const std::vector<json> all = run.stages();
                return all.size() == 4 && std::all_of(all.begin(), all.end(), [&](const json& s) {
                           return s["state"] == "running" && s["pid"].is_number() &&
                                  hit.count(s["pid"].get<i32>()) == 0;
                       });
            },
            20));
        for (const json& s : run.stages()) {
            const i32 pid = s["pid"].get<i32>();
            hit.insert(pid);
            ::kill(pid, SIGKILL);
        }
    }
    CHECK(makes_progress(run));
    end_intact(run, "all", picture_pipeline("all"));
    CHECK(run.report()["restarts"] == 40);
}

TEST_CASE("the others keep their processes and their frames while one is killed") {
    run_fixture run;
    run.start(run.pipeline("others", picture_pipeline("others", "fps = 200\n")));
    REQUIRE(run.wait_running());
    const i32 geometry = run.pid_of("geometry"), display = run.pid_of("display");
    for (int k = 0; k < 10; ++k) {
        const i32 before = run.pid_of("fragment");
        REQUIRE(before > 0);
        REQUIRE(::kill(before, SIGKILL) == 0);
        REQUIRE(run.wait_until(
            [&] {
                const i32 now = run.pid_of("fragment");
                return now != 0 && now != before;
            },
            10));
    }
    CHECK(run.pid_of("geometry") == geometry);
    CHECK(run.pid_of("display") == display);
    CHECK(makes_progress(run));
    end_intact(run, "others", picture_pipeline("others"));
    const json r = run.report();
    CHECK(r["lost"] == 0);
    for (const json& s : r["stages"]) CHECK(s["restarts"] == (s["name"] == "fragment" ? 10 : 0));
}

TEST_CASE("kills fall at all five states of a job") {
    // A slow process() shows OPEN, slow work SUBMITTED, deadlines ABORTED (the kill comes after the abort).
    // COMMITTED lasts some microseconds, which 500 kills in a row have missed: that one is planned.
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("middle", crash_point::job_committed, "kill", 3);
    plan.write();
    run.start(run.pipeline("states", number_pipeline("states", "frame_timeout_ms = 200\n",
                                                     "enqueue_ms = 1\nwork_ms = 1\n")),
              {}, {plan.environment()});
    REQUIRE(run.wait_running());
    std::mt19937_64 random(test_seed());
    const f64 until = seconds_now() + 40;
    u32 kills = 0;
    std::set<std::string> seen;
    while (seconds_now() < until && run.running() && seen.size() < 5) {
        const char* stages[] = {"numbers", "middle", "sink"};
        if (kills % 20 == 19) {
            run.hit("middle", SIGSTOP);  // a hang: found at its deadline, aborted, then killed
            run.wait_until(
                [&] { return run.stage("middle").value("last_exit", json()) == "signal 19 (SIGSTOP)"; }, 3);
        } else {
            run.hit(stages[random() % 3], SIGKILL);
        }
        ++kills;
        sleep_s(0.005 + static_cast<f64>(random() % 20) / 1000.0);
        const json p = run.ask({{"type", "ps"}});
        if (!p.contains("pipeline")) continue;
        for (const auto& [state, count] : p["pipeline"]["kills_at"].items())
            if (count.get<u64>() > 0) seen.insert(state);
    }
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    const json r = run.report();
    fmt::print("{} kills, at {}\n", kills, r["kills_at"].dump());
    for (const char* state : {"idle", "open", "submitted", "committed", "aborted"}) {
        CAPTURE(state);
        CHECK(r["kills_at"][state] > 0);
    }
    check_undamaged(r);
}
