// Warm standbys: a process that takes a dead stage's seat.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <regex>
#include <set>

#include "shm/process_id.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

/// The pid of a stage's ready standby; 0 while there is none.
i32 standby_of(run_fixture& run, const std::string& stage) {
    const json s = run.stage(stage);
    return s.value("standby", json()) == "ready" && s["standby_pid"].is_number() ? s["standby_pid"].get<i32>()
                                                                                 : 0;
}
/// Waits for a standby other than `old`. Returns 0 if none came.
i32 next_standby(run_fixture& run, const std::string& stage, i32 old = 0) {
    i32 found = 0;
    (void)run.wait_until([&] { return (found = standby_of(run, stage)) != 0 && found != old; });
    return found != old ? found : 0;
}

}  // namespace

TEST_CASE("a warm standby takes a killed stage's seat and a new standby starts after it") {
    run_fixture run;
    run.start(run.pipeline("warm", number_pipeline("warm", patient_keys, "standby = true\n",
                                                   "standby = true\n", "standby = true\n")));
    u32 kills = 0;
    for (const char* stage : {"middle", "sink", "numbers", "middle", "sink", "numbers"}) {
        const i32 standby = next_standby(run, stage);
        REQUIRE(standby != 0);
        run.hit(stage, SIGKILL);
        ++kills;
        REQUIRE(run.wait_until([&] { return run.pid_of(stage) == standby; }, 5));
        REQUIRE(next_standby(run, stage, standby) != 0);
    }
    end_intact(run, kills);
    INFO(run.log());
    const json r = run.report();
    CHECK(r["standby_takeovers"] == kills);
    const std::regex back("\\| (numbers|middle|sink) is back as pid \\d+ after [\\d.]+ m?s \\(standby\\)\n");
    const std::string log = run.log();
    CHECK(std::distance(std::sregex_iterator(log.begin(), log.end(), back), std::sregex_iterator()) == kills);
    fmt::print("standby, from the death being seen to the next committed frame: {}\n",
               r["standby_takeover_ms"].dump());
}

TEST_CASE("a standby that is killed causes no loss and is replaced") {
    run_fixture run;
    run.start(run.pipeline("standby", number_pipeline("standby", crash_keys, "standby = true\n")));
    i32 standby = 0;
    for (int k = 0; k < 3; ++k) {
        standby = next_standby(run, "middle", standby);
        REQUIRE(standby != 0);
        REQUIRE(::kill(standby, SIGKILL) == 0);
    }
    standby = next_standby(run, "middle", standby);
    REQUIRE(standby != 0);
    // one that can't wake up when it is called: it is replaced like any stopped stage
    ::kill(standby, SIGSTOP);
    run.hit("middle", SIGKILL);
    CHECK(run.wait_until([&] { return !shm::is_alive({standby, shm::start_time_of(standby)}); }));
    CHECK(makes_progress(run));
    end_intact(run, 2);
}

TEST_CASE("the owner and its standby die together and the seat is filled again") {
    run_fixture run;
    run.start(run.pipeline("both", number_pipeline("both", crash_keys, "standby = true\n")));
    i32 standby = 0, holder = 0;
    for (int k = 0; k < 3; ++k) {  // those that died in the last round may still be listed
        standby = next_standby(run, "middle", standby);
        REQUIRE(standby != 0);
        REQUIRE(run.wait_until(
            [&] {
                const i32 now = run.pid_of("middle");
                return now != 0 && now != holder && now != standby;
            },
            10));
        holder = run.pid_of("middle");
        ::kill(k == 0 ? standby : holder, SIGKILL);
        ::kill(k == 0 ? holder : standby, SIGKILL);
    }
    REQUIRE(next_standby(run, "middle", standby) != 0);
    CHECK(makes_progress(run));
    end_intact(run, 3);
}

TEST_CASE("every step at which a stage can die is survived with standbys, too") {
    const u64 seed = test_seed();
    CAPTURE(seed);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add_incarnations("numbers", role::source, "kill", standby_points(), seed);
    plan.add_incarnations("middle", role::middle, "kill", standby_points(), seed + 1);
    plan.add_incarnations("sink", role::sink, "kill", standby_points(), seed + 2);
    plan.write();
    run.start(run.pipeline("points", number_pipeline("points", crash_keys, "standby = true\n",
                                                     "standby = true\n", "standby = true\n")),
              {}, {plan.environment()});
    CHECK(run.wait_until([&] { return plan.pending_lines().empty() || !run.running(); }, 180));
    CHECK(makes_progress(run));
    end_intact(run, plan.lines() / 2);
    CHECK(plan.pending_lines() == "");
    CHECK(run.report()["standby_takeovers"] > 0);
}

TEST_CASE("a standby that dies in the moment of taking over leaves the seat to the next one") {
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("middle", crash_point::took_over, "kill", 1);
    plan.write();
    run.start(run.pipeline("moment", number_pipeline("moment", crash_keys, "standby = true\n")), {},
              {plan.environment()});
    REQUIRE(next_standby(run, "middle") != 0);
    run.hit("middle", SIGKILL);
    CHECK(run.wait_until([&] { return plan.pending_lines().empty(); }));
    CHECK(makes_progress(run));
    end_intact(run, 2);
}

TEST_CASE("a standby that took over and delivered the last frame has no successor") {
    run_fixture run;
    // The sink has work for 0.4 s when the last frame is through the middle: time enough to start a process.
    run.start(run.pipeline(
        "last", number_pipeline("last", patient_keys, "standby = true\n", "", "finish_ms = 100\n")));
    const i32 standby = next_standby(run, "middle");
    REQUIRE(standby != 0);
    run.hit("middle", SIGKILL);
    REQUIRE(run.wait_until([&] { return run.pid_of("middle") == standby; }, 5));
    end_intact(run, 1);
    INFO(run.log());
    CHECK(run.report()["restarts"] == 1);
    CHECK_THAT(run.log(), !contains("the run is ending"));
}

TEST_CASE("a restarted stage takes the new program, not the old one's standby") {
    run_fixture run;
    run.start(run.pipeline("anew", number_pipeline("anew", patient_keys, "standby = true\n")));
    const i32 standby = next_standby(run, "middle");
    REQUIRE(standby != 0);
    std::string out;
    REQUIRE(run.command({"restart", "middle", "-p", "anew"}, out) == 0);
    REQUIRE(next_standby(run, "middle", standby) != 0);
    CHECK(run.pid_of("middle") != standby);
    end_intact(run, 1);
    CHECK(run.report()["standby_takeovers"] == 0);
}

namespace {
/// A pipeline whose three stages all have standbys, and their pids.
struct doubled {
    run_fixture run;
    std::string file;
    std::vector<std::string> environment;
    std::map<std::string, i32> holder, standby;

    explicit doubled(const std::string& name, std::vector<std::string> env = {})
        : environment(std::move(env)) {
        file =
            run.pipeline(name, number_pipeline(name, std::string(patient_keys) + "supervisor_grace_s = 20\n",
                                               "standby = true\n", "standby = true\n", "standby = true\n"));
        start();
        REQUIRE(find_processes());
    }
    void start() { run.start(file, {}, environment); }
    /// Returns whether every stage has a ready standby.
    bool find_processes() {
        for (const char* stage : {"numbers", "middle", "sink"}) {
            standby[stage] = next_standby(run, stage);
            holder[stage] = run.pid_of(stage);
            if (standby[stage] == 0 || holder[stage] == 0) return false;
        }
        return true;
    }
    void lose_supervisor() {
        run.signal(SIGKILL);
        REQUIRE(run.wait() == -SIGKILL);
    }
};
bool is_gone(i32 pid) { return !shm::is_alive({pid, shm::start_time_of(pid)}); }
/// Returns whether a death in the report was a standby's.
bool reports_missing_standby(const json& report) {
    return std::none_of(report["recoveries"].begin(), report["recoveries"].end(),
                        [](const json& r) { return r["epoch"] == 0; });
}
}  // namespace

TEST_CASE("standbys outlive their supervisor: the same ones serve the next, and take over") {
    doubled d("doubled");
    const std::map<std::string, i32> standbys = d.standby, holders = d.holder;
    d.lose_supervisor();
    sleep_s(0.2);
    for (const auto& [stage, pid] : standbys) CHECK_FALSE(is_gone(pid));
    d.start();
    REQUIRE(d.find_processes());
    CHECK(d.standby == standbys);
    CHECK(d.holder == holders);
    CHECK(d.run.wait_until(
        [&] { return d.run.log().find("3 stages alive, and 3 standbys") != std::string::npos; }, 5));
    for (const auto& [stage, pid] : standbys) {
        CAPTURE(stage);
        d.run.hit(stage, SIGKILL);
        CHECK(d.run.wait_until(
            [&, &stage_name = stage, next = pid] { return d.run.pid_of(stage_name) == next; }, 5));
    }
    CHECK(makes_progress(d.run));
    end_intact(d.run, 3);
    CHECK(d.run.report()["taken_over"] == 1);
    CHECK(d.run.report()["standby_takeovers"] == 3);
    CHECK(d.run.report()["deaths"] == 3);
    CHECK(reports_missing_standby(d.run.report()));
}

TEST_CASE("without a supervisor, dead stages are replaced by standbys, even all at the same time") {
    const bool all = GENERATE(false, true);
    CAPTURE(all);
    doubled d("widows");
    const std::map<std::string, i32> standbys = d.standby;
    d.lose_supervisor();
    ::kill(d.holder["middle"], SIGKILL);
    if (all)  // only the standbys have the memory of the rings
        for (const char* stage : {"numbers", "sink"}) ::kill(d.holder[stage], SIGKILL);
    CHECK(d.run.wait_until([&] { return is_gone(d.holder["middle"]); }, 5));
    d.start();
    REQUIRE(d.run.wait_running());
    CHECK(d.run.pid_of("middle") == standbys.at("middle"));
    if (all) CHECK(d.run.pid_of("sink") == standbys.at("sink"));
    CHECK(makes_progress(d.run));
    end_intact(d.run, 1);
    CHECK(d.run.report()["taken_over"] == 1);
    CHECK(d.run.report()["standby_takeovers"].get<int>() >= (all ? 3 : 1));
}

TEST_CASE("a standby that dies while there is no supervisor is replaced by the next one") {
    doubled d("spent");
    const i32 old = d.standby["middle"];
    d.lose_supervisor();
    ::kill(old, SIGKILL);
    d.start();
    const i32 fresh = next_standby(d.run, "middle", old);
    REQUIRE(fresh != 0);
    d.run.hit("middle", SIGKILL);
    CHECK(d.run.wait_until([&] { return d.run.pid_of("middle") == fresh; }, 5));
    CHECK(makes_progress(d.run));
    end_intact(d.run, 1);
    CHECK(d.run.report()["deaths"] == 1);
    CHECK(reports_missing_standby(d.run.report()));
}

TEST_CASE("a supervisor that dies between the steps of a promotion has a successor that completes it") {
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("supervisor", crash_point::seat_named, "kill", 1);
    plan.write();
    const std::string file = run.pipeline("half", number_pipeline("half", crash_keys, "standby = true\n"));
    const bool standby_dies = GENERATE(false, true);
    CAPTURE(standby_dies);
    run.start(file, {}, {plan.environment()});
    const i32 standby = next_standby(run, "middle");
    REQUIRE(standby != 0);
    run.hit("middle", SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    CHECK(plan.pending_lines() == "");
    if (standby_dies) ::kill(standby, SIGKILL);
    run.start(file, {}, {plan.environment()});
    REQUIRE(run.wait_running());
    CHECK((run.pid_of("middle") == standby) == !standby_dies);
    CHECK(makes_progress(run));
    end_intact(run, 1);
    CHECK(run.report()["taken_over"] == 1);
}

TEST_CASE("supervisors, stages and standbys killed at random lose, repeat and tear nothing") {
    std::mt19937_64 random(test_seed());
    doubled d("regents");
    std::set<i32> hit;
    for (int round = 0; round < 4; ++round) {
        for (int k = 0; k < 2; ++k) {
            const char* stage = std::vector{"numbers", "middle", "sink"}[random() % 3];
            const i32 pid = random() % 3 == 0 ? standby_of(d.run, stage) : d.run.pid_of(stage);
            if (pid > 0 && ::kill(pid, SIGKILL) == 0) hit.insert(pid);
            sleep_s(static_cast<f64>(random() % 60) / 1000);
        }
        d.lose_supervisor();
        sleep_s(static_cast<f64>(random() % 100) / 1000);
        d.start();
        REQUIRE(d.run.wait_running());
    }
    CHECK(makes_progress(d.run));
    end_intact(d.run, 1);
    const json r = d.run.report();
    CHECK(r["taken_over"] == 4);
    for (const json& each : r["recoveries"]) {
        CAPTURE(each.dump());
        CHECK(each["epoch"] != 0);
        if (!each.contains("seen_ns")) continue;  // the standby exited at the end of the run
        CHECK(hit.count(each["pid"].get<i32>()) == 1);
    }
    fmt::print("standbys took over {}, not {}\n", r["standby_takeovers"].dump(), r["standby_missed"].dump());
}
