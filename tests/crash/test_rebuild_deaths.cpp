// Deaths during a rebuild (B1 to B4): of the supervisor at each named step, and of stages before and after
// it. DEATHS.md has what each of them leaves.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "shm/process_id.hpp"
#include "shm/segment.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/crash/port_run.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {

/// Requests a rebuild and waits until the new block is in use.
bool rebuild_to_its_end(run_fixture& run) {
    const auto now = [&] { return run.ask({{"type", "ps"}})["pipeline"]; };
    const u64 before = now().value("rebuilds", u64{0});
    return rebuild(run) && run.wait_until([&] {
        const nlohmann::json p = now();
        return p.value("rebuilds", u64{0}) > before && p.value("state", "rebuilding") != "rebuilding";
    });
}

bool has_fired(const run_fixture& run, std::size_t line) {
    return std::filesystem::exists(fmt::format("{}.{}", run.path("plan"), line));
}

struct stop_at {
    std::string stage;
    crash_point point;
};

// A process reads the plan at its start, so a line that is written before a rebuild is one for the processes
// after it.

/// One run, which is rebuilt once per death: each process stops at its point, and the rebuild ends it.
void rebuild_with_stopped(const std::vector<stop_at>& stops) {
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add(stops[0].stage, stops[0].point, "stop", 10);
    plan.write();
    run.start(run.pipeline("stopped", number_pipeline("stopped", patient_keys)), {}, {plan.environment()});
    REQUIRE(run.wait_running());
    for (std::size_t k = 0; k < stops.size(); ++k) {
        CAPTURE(stops[k].stage, std::string(name_of(stops[k].point)));
        REQUIRE(run.wait_until([&] { return has_fired(run, k + 1); }));
        if (k + 1 < stops.size()) plan.add(stops[k + 1].stage, stops[k + 1].point, "stop", 10);
        plan.write();
        REQUIRE(rebuild_to_its_end(run));
    }
    CHECK(makes_progress(run));
    end_intact(run, 0);
    CHECK(run.report()["rebuilds"] == stops.size());
}

/// One run, which is rebuilt once per point: the stage's first process after it dies there.
void die_after_rebuilds(const std::string& stage, const std::vector<crash_point>& points) {
    CAPTURE(stage);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.write();
    run.start(run.pipeline("early", number_pipeline("early", patient_keys)), {}, {plan.environment()});
    REQUIRE(run.wait_running());
    for (std::size_t k = 0; k < points.size(); ++k) {
        CAPTURE(std::string(name_of(points[k])));
        REQUIRE(makes_progress(run));
        plan.add(stage, points[k], "kill", 1);
        plan.write();
        REQUIRE(rebuild(run));
        REQUIRE(run.wait_until([&] { return has_fired(run, k + 1); }));
    }
    CHECK(makes_progress(run));
    end_intact(run, points.size());
    CHECK(run.report()["rebuilds"] == points.size());
}

/// Starts the run again after each death of its supervisor in a rebuild: one per line of the plan. `begin`:
/// called when the k-th supervisor is at work; `end`: when it has died.
template <typename F, typename G>
void die_in_rebuilds(run_fixture& run, const std::string& file, const crash_plan& plan, F&& begin, G&& end) {
    for (std::size_t k = 0; k <= plan.lines(); ++k) {
        CAPTURE(k);
        run.start(file, {}, {plan.environment()});
        REQUIRE(run.wait_running());
        begin(k);
        if (k == plan.lines()) break;
        (void)rebuild(run);
        REQUIRE(run.wait() == -SIGKILL);
        end(k);
    }
    CHECK(makes_progress(run));
    end_intact(run, 0);
}

constexpr const char* with_standby = "standby = true\n";
constexpr std::array<const char*, 3> all_stages = {"numbers", "middle", "sink"};

std::string standby_pipeline(const std::string& name) {
    return number_pipeline(name, patient_keys, with_standby, with_standby, with_standby);
}

/// The pids of the ready standbys of all stages; 0 for a stage without one.
std::map<std::string, i32> standbys_of(run_fixture& run) {
    std::map<std::string, i32> found;
    (void)run.wait_until([&] {
        for (const nlohmann::json& s : run.stages())
            found[s["name"]] = s.value("standby", nlohmann::json()) == "ready" && s["standby_pid"].is_number()
                                   ? s["standby_pid"].get<i32>()
                                   : 0;
        return found.size() == all_stages.size() &&
               std::all_of(found.begin(), found.end(), [](const auto& f) { return f.second != 0; });
    });
    return found;
}

}  // namespace

TEST_CASE("a run whose supervisor dies at any step of a rebuild is replaced by the next start") {
    using enum crash_point;
    run_fixture run;
    crash_plan plan(run.path("plan"));
    for (const crash_point point : {rebuild_begun, rebuild_fenced, memory_remade, ledgers_ended,
                                    block_removed, block_filled, block_rebuilt})
        plan.add("supervisor", point, "kill", point == block_filled ? 2 : 1);
    plan.write();
    const std::string file = run.pipeline("broken-off", number_pipeline("broken-off", patient_keys));
    die_in_rebuilds(
        run, file, plan,
        [&](std::size_t k) {
            if (k > 0) CHECK_THAT(run.log(), contains("A new run starts"));
        },
        [&](std::size_t k) { CHECK(has_fired(run, k + 1)); });
}

TEST_CASE("a supervisor that dies while it starts the stages of a rebuilt run has a successor") {
    run_fixture run;
    crash_plan plan(run.path("plan"));
    for (const u64 nth : {4, 5}) plan.add("supervisor", crash_point::stage_spawned, "kill", nth);
    plan.write();
    const std::string file = run.pipeline("begun", number_pipeline("begun", patient_keys));
    die_in_rebuilds(
        run, file, plan, [](std::size_t) {}, [](std::size_t) {});
}

TEST_CASE("a rebuild makes standbys the working processes of their seats, and kills one that is stopped") {
    run_fixture run;
    run.start(run.pipeline("kept", standby_pipeline("kept")));
    auto standbys = standbys_of(run);
    const i32 stopped = standbys["middle"];
    REQUIRE(stopped != 0);
    REQUIRE(::kill(stopped, SIGSTOP) == 0);
    REQUIRE(rebuild_to_its_end(run));
    CHECK_FALSE(shm::is_alive({stopped, shm::start_time_of(stopped)}));
    CHECK(makes_progress(run));
    for (const char* stage : {"numbers", "sink"}) CHECK(run.pid_of(stage) == standbys[stage]);
    run.hit("sink", SIGKILL);
    CHECK(makes_progress(run));
    end_intact(run, 1);
}

TEST_CASE("standbys that die or stop while they start over lose no frame") {
    using enum crash_point;
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("numbers", start_over_requested, "kill", 1);
    plan.add("middle", detached, "kill", 1);
    plan.add("sink", detach_reported, "kill", 1);
    plan.add("numbers", start_over_requested, "stop", 1);
    plan.add("middle", entry_claimed, "kill", 2);  // a standby passes this point at its start as well
    plan.add("sink", detach_reported, "stop", 1);
    plan.write();
    run.start(run.pipeline("over", standby_pipeline("over")), {}, {plan.environment()});
    for (std::size_t round = 0; round < 2; ++round) {
        CAPTURE(round);
        auto standbys = standbys_of(run);
        REQUIRE(makes_progress(run));
        REQUIRE(rebuild(run));
        REQUIRE(run.wait_until([&] {
            return has_fired(run, 3 * round + 1) && has_fired(run, 3 * round + 2) &&
                   has_fired(run, 3 * round + 3);
        }));
        if (round == 1) {  // the one whose report has been sent is not killed, and continues
            REQUIRE(run.wait_until([&] { return run.pid_of("sink") == standbys["sink"]; }));
            REQUIRE(::kill(standbys["sink"], SIGCONT) == 0);
        }
        CHECK(makes_progress(run));
    }
    CHECK(plan.pending_lines() == "");
    end_intact(run, 1);
}

TEST_CASE("a supervisor that dies while standbys start over has a successor, and no process is left") {
    using enum crash_point;
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("supervisor", rebuild_fenced, "kill", 1);
    plan.add("supervisor", stage_reattached, "kill", 2);
    plan.write();
    const std::string file = run.pipeline("left", standby_pipeline("left"));
    die_in_rebuilds(
        run, file, plan, [&](std::size_t k) { CHECK((k == plan.lines() || standbys_of(run)["sink"] != 0)); },
        [](std::size_t) {});
}

TEST_CASE("a program at a port outlives a rebuild's supervisor and the start of the next run") {
    port_run run("outlived", "supervisor_grace_s = 20\n", witness());
    external_program writes = run.writes("writes"), reads = run.reads("reads", {"0", "30", "60000"});
    REQUIRE(run.wait_until([&] { return reads.has_printed("holds 30"); }));
    REQUIRE(rebuild(run));  // it waits for the reader's frame; no other process of the run is left
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    run.start(run.file());
    REQUIRE(run.wait_until([&] { return run.is("analysis", "vacant"); }));
    CHECK_THAT(run.log(), contains("A new run starts"));
    CHECK(reads.wait(0.2) == -1000);
    external_program next_writes = run.writes("next-writes"), next_reads = run.reads("next-reads");
    CHECK(run.makes_progress(next_reads));
    reads.signal(SIGKILL);
    run.end_and_check();
}

TEST_CASE("processes that stop at any step of their commit lose no frame in a rebuild") {
    using enum crash_point;
    rebuild_with_stopped({{"numbers", job_submitted},
                          {"numbers", job_committed},
                          {"middle", slot_filled},
                          {"middle", job_committed},
                          {"middle", slot_ready},
                          {"middle", input_done},
                          {"sink", host_work_done},
                          {"sink", job_committed}});
}

TEST_CASE("a stage whose process dies early in a rebuilt run is started again, and no frame is lost") {
    using enum crash_point;
    die_after_rebuilds("middle", {connected, entry_claimed, live});
}

TEST_CASE("the first process of any stage dies at any step of its start in a rebuilt run") {
    for (const char* stage : {"numbers", "middle", "sink"}) die_after_rebuilds(stage, set_up_points());
}

TEST_CASE("a writer that is stopped after its commit is not reported as refused by the rebuild") {
    port_run run("committed", "", witness());
    crash_plan plan(run.path("plan"));
    plan.add("write", crash_point::job_committed, "stop", 30);
    plan.write();
    external_program writes = run.writes("writes", {"200"}, {plan.environment()}), reads = run.reads("reads");
    REQUIRE(run.wait_until([&] { return has_fired(run, 1); }));
    CHECK(rebuild_to_its_end(run));
    writes.signal(SIGCONT);
    CHECK(run.makes_progress(writes));
    CHECK(run.makes_progress(reads));
    CHECK_FALSE(writes.has_printed("revoked"));
    run.end_and_check();
    CHECK(writes.wait(20) == 0);
    CHECK(reads.wait(20) == 0);
}

TEST_CASE("frames that a port has written are counted as lost if their run can't be rebuilt") {
    const scratch_folder folder;
    crash_plan plan((folder.path / "plan").string());
    plan.add("supervisor", crash_point::block_removed, "stop", 1);
    plan.write();
    port_run run("unsaved", "", witness(), {plan.environment()});
    // the reader keeps frame 3, so this frame and those after it are not delivered
    external_program writes = run.writes("writes"), reads = run.reads("reads", {"0", "3", "60000"});
    REQUIRE(run.wait_until([&] { return reads.has_printed("holds 3"); }));
    REQUIRE(rebuild(run));
    REQUIRE(run.wait_until([&] { return plan.pending_lines() == ""; }));
    // the new block can't be made, because its name is taken
    const std::string block = "/dev/shm/" + shm::segment::object_name(run.run_id());
    std::ofstream(block) << "taken";
    run.signal(SIGCONT);
    CHECK(run.wait() != 0);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("the rebuild failed"));
    CHECK(run.report()["lost"].get<u64>() > 0);
    std::filesystem::remove(block);
}

TEST_CASE("more unfenced writers than spare buffers do not end the run: the ring gets other memory") {
    port_run run("crowded", "supervisor_grace_s = 20\n", witness());
    external_program reads = run.reads("reads");
    std::vector<external_program> holders;
    for (int k = 0; k < 5; ++k) {
        CAPTURE(k);
        holders.push_back(run.writes(fmt::format("holds-{}", k), {"200", "0", "60000"}));
        REQUIRE(run.wait_until([&] { return holders.back().has_printed("holds "); }));
        REQUIRE(rebuild_to_its_end(run));
    }
    CHECK_THAT(run.log(), contains("the ring of camera gets other memory"));
    external_program writes = run.writes("writes");
    CHECK(run.makes_progress(writes));
    CHECK(run.makes_progress(reads));
    for (const external_program& p : holders) p.signal(SIGKILL);
    CHECK(run.makes_progress(reads));
    run.end_and_check();
    CHECK(reads.wait(20) == 0);
}
