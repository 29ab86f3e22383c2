// Warm standbys: a spare process that takes a dead stage's seat.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

/// The pid of a stage's standby that is ready; 0 while there is none.
i32 spare_of(run_fixture& run, const std::string& stage) {
    const json s = run.stage(stage);
    return s.value("standby", json()) == "ready" && s["standby_pid"].is_number() ? s["standby_pid"].get<i32>() : 0;
}
/// Waits for a standby other than `old`. 0: none came.
i32 next_spare(run_fixture& run, const std::string& stage, i32 old = 0) {
    i32 found = 0;
    (void)run.wait_until([&] { return (found = spare_of(run, stage)) != 0 && found != old; });
    return found != old ? found : 0;
}

}  // namespace

TEST_CASE("a warm standby takes a killed stage's seat and a new one starts behind it") {
    const std::string hash = undisturbed_hash(3000);
    run_fixture run;
    run.start(run.pipeline("warm", number_pipeline("warm", crash_keys, "standby = true\n", "standby = true\n", "standby = true\n")),
              {"--frames", "3000"});
    u32 kills = 0;
    for (const char* stage : {"middle", "sink", "numbers", "middle", "sink", "numbers"}) {
        const i32 spare = next_spare(run, stage);
        REQUIRE(spare != 0);
        run.hit(stage, SIGKILL);
        ++kills;
        REQUIRE(run.wait_until([&] { return run.pid_of(stage) == spare; }, 5));
        REQUIRE(next_spare(run, stage, spare) != 0);
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 3000, hash, kills);
    const json r = run.report();
    CHECK(r["standby_takeovers"] == kills);
    fmt::print("standby, from the death being seen to the next committed frame: {}\n", r["standby_takeover_ms"].dump());
}

TEST_CASE("a standby that is killed harms nothing and is replaced") {
    const std::string hash = undisturbed_hash(1500);
    run_fixture run;
    run.start(run.pipeline("spare", number_pipeline("spare", crash_keys, "standby = true\n")), {"--frames", "1500"});
    i32 spare = 0;
    for (int k = 0; k < 3; ++k) {
        spare = next_spare(run, "middle", spare);
        REQUIRE(spare != 0);
        REQUIRE(::kill(spare, SIGKILL) == 0);
    }
    spare = next_spare(run, "middle", spare);
    REQUIRE(spare != 0);
    ::kill(spare, SIGSTOP);  // one that can't wake up when it is called: it is replaced like any stopped stage
    run.hit("middle", SIGKILL);
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 1500, hash, 2);
}

TEST_CASE("the holder and its standby die together and the seat is filled anew") {
    const std::string hash = undisturbed_hash(1500);
    run_fixture run;
    run.start(run.pipeline("both", number_pipeline("both", crash_keys, "standby = true\n")), {"--frames", "1500"});
    i32 spare = 0, holder = 0;
    for (int k = 0; k < 3; ++k) {  // the dying ones of the last round may still be shown
        spare = next_spare(run, "middle", spare);
        REQUIRE(spare != 0);
        REQUIRE(run.wait_until([&] {
            const i32 now = run.pid_of("middle");
            return now != 0 && now != holder && now != spare;
        }, 10));
        holder = run.pid_of("middle");
        ::kill(k == 0 ? spare : holder, SIGKILL);
        ::kill(k == 0 ? holder : spare, SIGKILL);
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 1500, hash, 3);
}

TEST_CASE("every step at which a stage can die is survived with standbys, too") {
    const u64 seed = test_seed();
    CAPTURE(seed);
    const std::string hash = undisturbed_hash(6000);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add_life_story("numbers", role::source, "kill", standby_points(), seed);
    plan.add_life_story("middle", role::middle, "kill", standby_points(), seed + 1);
    plan.add_life_story("sink", role::sink, "kill", standby_points(), seed + 2);
    plan.write();
    run.start(run.pipeline("points", number_pipeline("points", crash_keys, "standby = true\n", "standby = true\n", "standby = true\n")),
              {"--frames", "6000"}, {plan.environment()});
    CHECK(run.wait(180) == 0);
    INFO(run.log());
    CHECK(plan.still_to_come() == "");
    check_whole(run, 6000, hash, plan.lines() / 2);
    CHECK(run.report()["standby_takeovers"] > 0);
}

TEST_CASE("a standby that dies in the moment of taking over leaves the seat to the next one") {
    const std::string hash = undisturbed_hash(1500);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("middle", crash_point::took_over, "kill", 1);
    plan.write();
    run.start(run.pipeline("moment", number_pipeline("moment", crash_keys, "standby = true\n")), {"--frames", "1500"}, {plan.environment()});
    REQUIRE(next_spare(run, "middle") != 0);
    run.hit("middle", SIGKILL);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(plan.still_to_come() == "");
    check_whole(run, 1500, hash, 2);
}

TEST_CASE("a restarted stage takes the new program, not the old one's standby") {
    run_fixture run;
    run.start(run.pipeline("anew", number_pipeline("anew", crash_keys, "standby = true\n")), {"--frames", "3000"});
    const i32 spare = next_spare(run, "middle");
    REQUIRE(spare != 0);
    std::string out;
    REQUIRE(run.command({"restart", "middle", "-p", "anew"}, out) == 0);
    REQUIRE(next_spare(run, "middle", spare) != 0);
    CHECK(run.pid_of("middle") != spare);
    CHECK(run.wait() == 0);
    CHECK(run.report()["standby_takeovers"] == 0);
    CHECK(run.report()["lost"] == 0);
    CHECK(run.left_behind() == "");
}

TEST_CASE("a second supervisor ends the first one's standbys and starts its own") {
    const std::string hash = undisturbed_hash(2000);
    run_fixture run;
    const std::string file = run.pipeline("heir", number_pipeline("heir", crash_keys, "standby = true\n"));
    run.start(file, {"--frames", "2000"});
    const i32 old = next_spare(run, "middle"), holder = run.pid_of("middle");
    REQUIRE(old != 0);
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    run.start(file, {"--frames", "2000"});
    const i32 spare = next_spare(run, "middle", old);
    REQUIRE(spare != 0);
    CHECK(run.pid_of("middle") == holder);
    CHECK(run.wait_until([&] { return ::kill(old, 0) != 0; }, 5));
    run.hit("middle", SIGKILL);
    CHECK(run.wait_until([&] { return run.pid_of("middle") == spare; }, 5));
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 2000, hash, 1);
    CHECK(run.report()["taken_over"] == 1);
}

TEST_CASE("a supervisor that dies between the two steps of a promotion is followed by one that fills the seat") {
    const std::string hash = undisturbed_hash(1500);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("supervisor", crash_point::seat_named, "kill", 1);
    plan.write();
    const std::string file = run.pipeline("half", number_pipeline("half", crash_keys, "standby = true\n"));
    run.start(file, {"--frames", "1500"}, {plan.environment()});
    const i32 spare = next_spare(run, "middle");
    REQUIRE(spare != 0);
    run.hit("middle", SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    CHECK(plan.still_to_come() == "");
    run.start(file, {"--frames", "1500"}, {plan.environment()});
    REQUIRE(run.wait_running());
    CHECK(run.pid_of("middle") != spare);  // it has no place: it was named, but never bore its epoch
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 1500, hash, 1);
    CHECK(run.report()["taken_over"] == 1);
}
