// Runs that continue from checkpoints of their states: after the loss of all memory, after a stop, and after
// a rebuild that finds no state in memory. All stages keep a running hash of all frames as their state
// (number_stage.cpp), so each frame's hash shows whether all states before it were right.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "control/mapped_ring.hpp"
#include "core/errors.hpp"
#include "device/cpu/memfd.hpp"
#include "ledger/ledger.hpp"
#include "run/checkpoint.hpp"
#include "supervisor/stores/checkpoint_store.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/crash/crash_plan.hpp"
#include "tests/crash/number_run.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

const std::string state_key = "state = true\n";
constexpr u64 frames = 400;

std::string remembering(run_fixture& run, const std::string& name, const std::string& keys, u32 fps = 400) {
    return run.pipeline(
        name, number_pipeline(name, fmt::format("fps = {}\n{}", fps, keys), state_key, state_key, state_key));
}
std::string with_checkpoints(const run_fixture& run, u64 every = 20) {
    return fmt::format("checkpoint_every = {}\ncheckpoint_to = \"{}\"\n", every, run.path("kept"));
}
const std::vector<std::string> all_frames = {"--frames", std::to_string(frames)};

/// The hashes of the frames from `first` up to `end`, by the account that the report keeps.
std::vector<u64> hashes(const run_fixture& run, u64 first, u64 end = frames) {
    const json r = run.report();
    REQUIRE(r["sinks"].size() == 1);
    const auto ledger = telemetry::ledger_reader::open(r["sinks"][0]["ledger"].get<std::string>());
    REQUIRE(ledger);
    std::vector<u64> all;
    for (const telemetry::ledger_record& each : ledger->read(first, end - first)) all.push_back(each.hash);
    return all;
}

std::vector<u64> undisturbed_hashes(u64 first, u64 end = frames) {
    run_fixture run;
    run.start(remembering(run, "calm", ""), {"--frames", std::to_string(end)});
    REQUIRE(run.wait() == 0);
    return hashes(run, first, end);
}

std::vector<u64> checkpoints(const run_fixture& run) { return run::read_checkpoints(run.path("kept")); }

/// Leaves nothing that proves a frame of that ring, while the middle is stopped, and requests a rebuild.
void damage(run_fixture& run, const std::string& ring = "middle.state") {
    const i32 middle = run.pid_of("middle");
    REQUIRE(::kill(middle, SIGSTOP) == 0);
    sleep_s(0.02);
    shm::segment s = shm::segment::attach(run.ask({{"type", "ps"}})["pipeline"].value("run_id", ""));
    shm::control_block& c = s.block();
    for (u32 k = 0; k < c.links; ++k) {
        if (std::string(c.link[k].name) != ring) continue;
        shm::open_frames(c, k);
        for (u32 slot = 0; slot < c.link[k].slots; ++slot) c.frames[k].header[slot].meta.born_ns ^= 1;
    }
    CHECK(rebuild(run));
}

/// The same by the status words in the ring's memory alone: the control block stays intact, so a rebuild
/// expects the states there. `while_stopped` is called before.
void forget(
    run_fixture& run, const std::string& name, const std::string& ring,
    const std::function<void()>& while_stopped = [] {}) {
    REQUIRE(::kill(run.pid_of("middle"), SIGSTOP) == 0);
    sleep_s(0.02);
    while_stopped();
    const shm::segment s = map_block(run);
    const run::mapped_ring mapped =
        run::map_ring(s.block(), run.path("runtime") + "/carousel/" + name + "/control.sock", ring);
    const device::memfd_mapping memory(mapped.memory, device::access::write);
    const shm::link_block& link = link_of(s, ring);
    for (u32 k = 0; k < link.slots; ++k)
        reinterpret_cast<device::status_word*>(memory.slot(k, link.slot_bytes))->ring_sequence ^= u64{1}
                                                                                                  << 40U;
    CHECK(rebuild(run));
}

/// Returns the END that a stop has found.
u64 wait_for_end(run_fixture& run) {
    const auto end = [&] { return ring::load(map_block(run).block().end); };
    REQUIRE(run.wait_until([&] { return end() < ring::end_stopping; }));
    return end();
}

}  // namespace

TEST_CASE("a run that has lost all memory continues from its newest checkpoint with the same states") {
    const u64 seed = test_seed();
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    run_fixture run;
    const std::string file = remembering(run, "lost", with_checkpoints(run, 10));
    run.start(file, all_frames);
    REQUIRE(run.wait_running());
    // Stages die while they write checkpoints.
    for (u32 k = 0; k < 6; ++k) {
        if (const i32 pid = run.pid_of(k % 2 == 0 ? "middle" : "numbers"); pid > 0) ::kill(pid, SIGKILL);
        sleep_s(static_cast<f64>(random() % 1000) / 25'000.0);
    }
    REQUIRE(run.wait_until([&] { return !checkpoints(run).empty() && checkpoints(run).back() >= 60; }));
    std::vector<i32> pids;
    for (const json& each : run.stages())
        if (const i32 pid = each.value("pid", 0); pid > 0) pids.push_back(pid);
    run.signal(SIGKILL);
    for (const i32 pid : pids) ::kill(pid, SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    REQUIRE(run.wait_until(
        [&] { return std::all_of(pids.begin(), pids.end(), [](i32 pid) { return ::kill(pid, 0) != 0; }); }));
    const u64 first = checkpoints(run).back();

    run.start(file, all_frames);  // not by mistake from the beginning
    CHECK(run.wait() == exit_code::usage);
    CHECK_THAT(run.log(), contains("continue with --first checkpoint"));
    CHECK(checkpoints(run).back() == first);

    run.start(file, {"--frames", std::to_string(frames), "--first", "checkpoint"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    CHECK(r["first"] == first);
    CHECK(r["state_lost_at"].empty());
    check_undamaged(r);
    CHECK(hashes(run, first) == undisturbed_hashes(first));
    CHECK_FALSE(std::filesystem::exists(run.path("kept")));  // the run is complete
}

TEST_CASE("a stopped run keeps its checkpoints, and states continue there, also over a rebuild") {
    run_fixture run;
    const std::string file = remembering(run, "stopped", with_checkpoints(run, 10), 50);
    run.start(file);
    REQUIRE(run.wait_until([&] { return !checkpoints(run).empty() && checkpoints(run).back() >= 20; }));
    run.signal(SIGTERM);
    CHECK(run.wait() == 0);
    REQUIRE_FALSE(checkpoints(run).empty());
    const u64 first = checkpoints(run).back();
    CHECK(first == run.report()["frames"]);  // so no frame is made again

    run.start(file, {"--first", "checkpoint", "--frames", "10"});
    CHECK(run.wait() == exit_code::usage);
    CHECK_THAT(run.log(), contains("but the run has 10 frames"));

    const u64 end = first + 100;
    run.start(file, {"--first", "checkpoint", "--frames", std::to_string(end)});
    // The checkpoint from which it has begun is gone, while its frames are still near.
    REQUIRE(run.wait_until([&] { return !checkpoints(run).empty() && checkpoints(run).front() > first; }));
    damage(run);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(run.report()["state_lost_at"].empty());
    check_undamaged(run.report());
    CHECK(hashes(run, first, end) == undisturbed_hashes(first, end));
}

TEST_CASE("a stage that dies before its last state is written is replaced, also when the run is stopped") {
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("middle", crash_point::end_seen, "kill", 1);
    plan.write();
    const std::string file = remembering(run, "dies", with_checkpoints(run));
    run.start(file, {}, {plan.environment()});
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(plan.pending_lines() == "");
    REQUIRE_FALSE(checkpoints(run).empty());
    CHECK(checkpoints(run).back() == run.report()["frames"]);
}

// With checkpoints of at most eight frames no state is left out, because a sender may wait for each of them.
TEST_CASE("a standby writes its predecessor's last state, also if that is not READY at the takeover") {
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("middle", crash_point::job_committed, "kill",
             16);  // frame 15, before the state for 16 is written
    plan.add("supervisor", crash_point::entry_doomed, "kill", 1);  // the standby has the seat
    plan.add("numbers", crash_point::job_chosen, "stop", 20);      // like a sender that keeps no more frames
    plan.write();
    const std::string file =
        run.pipeline("late", number_pipeline("late", with_checkpoints(run, 8), state_key + "standby = true\n",
                                             state_key, state_key));
    run.start(file, {}, {plan.environment()});
    REQUIRE(run.wait() == -SIGKILL);
    sleep_s(0.3);  // the standby searches for its first frame
    run.start(file);
    REQUIRE(run.wait_running());
    CHECK(run.wait_until([&] { return !checkpoints(run).empty() && checkpoints(run).back() == 16; }, 5));
    INFO(run.log());
    CHECK(plan.pending_lines() == "");
    CHECK(::kill(run.pid_of("numbers"), SIGCONT) == 0);
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}

TEST_CASE("a stopped run that is rebuilt before its end still writes its last states") {
    run_fixture run;
    run.start(remembering(run, "rebuilt", with_checkpoints(run, 1000)));
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    REQUIRE(::kill(run.pid_of("middle"), SIGSTOP) == 0);
    sleep_s(0.02);
    run.signal(SIGINT);
    (void)wait_for_end(run);
    CHECK(rebuild(run));
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(run.report()["rebuilds"] == 1);
    REQUIRE_FALSE(checkpoints(run).empty());
    CHECK(checkpoints(run).back() == run.report()["frames"]);
}

TEST_CASE("a last state that the disk does not take costs a stopped run its last checkpoint only") {
    run_fixture run;
    run.start(remembering(run, "full", with_checkpoints(run, 1000)));
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    const i32 middle = run.pid_of("middle");
    REQUIRE(::kill(middle, SIGSTOP) == 0);
    run.signal(SIGINT);
    const u64 end = wait_for_end(run);
    std::filesystem::create_directories(
        fmt::format("{}.{}.partial", run::state_path(run.path("kept"), "middle", end), middle));
    REQUIRE(::kill(middle, SIGCONT) == 0);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(), contains(fmt::format("the state before frame {}, at which the run ends", end)) &&
                              contains("are not all in"));
    CHECK(run.report()["restarts"] == 0);
    CHECK(checkpoints(run).empty());
}

TEST_CASE("a process does not need the checkpoint that its predecessor has continued from") {
    run_fixture run;
    const std::string file = remembering(run, "replaced", with_checkpoints(run, 1000));
    run.start(file);
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    run.signal(SIGINT);
    REQUIRE(run.wait() == 0);
    REQUIRE_FALSE(checkpoints(run).empty());
    const u64 first = checkpoints(run).back();
    const u64 end = first + 200;
    run.start(file, {"--first", "checkpoint", "--frames", std::to_string(end)});
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    // as newer checkpoints do while a process starts
    CHECK(std::filesystem::remove(run::state_path(run.path("kept"), "middle", first)));
    CHECK(::kill(run.pid_of("middle"), SIGKILL) == 0);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(run.report()["restarts"] == 1);
    CHECK(hashes(run, first, end) == undisturbed_hashes(first, end));
}

TEST_CASE("a run whose source has ended its stream is complete, even if it is stopped then") {
    run_fixture run;
    run.start(
        run.pipeline("ended", number_pipeline("ended", with_checkpoints(run, 10), state_key,
                                              state_key + "ends_at = 30\n", state_key + "finish_ms = 50\n")));
    REQUIRE(run.wait_running());
    CHECK(wait_for_end(run) == 30);
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("interrupted: finishing frames in flight"));
    CHECK(run.report()["frames"] == 30);
    CHECK_FALSE(std::filesystem::exists(run.path("kept")));
}

TEST_CASE("an upgrade that drains the run continues with its states") {
    run_fixture run;
    run.start(remembering(run, "kept", with_checkpoints(run, 50)));
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    std::string out;
    CHECK(run.command({"upgrade", "-p", "kept", "--drain"}, out) == exit_code::ok);
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    CHECK(r["state_lost_at"].empty());
    REQUIRE(r["first"].get<u64>() > 0);
    const u64 end = r["frames"].get<u64>();
    CHECK(hashes(run, r["first"], end) == undisturbed_hashes(r["first"], end));
}

TEST_CASE("a checkpoint whose files are gone is not replaced by zeros at the beginning of the run") {
    run_fixture run;
    const std::string file = remembering(run, "emptied", with_checkpoints(run, 10), 50);
    run.start(file);
    REQUIRE(run.wait_until([&] { return !checkpoints(run).empty(); }));
    run.signal(SIGINT);
    REQUIRE(run.wait() == 0);
    const u64 first = checkpoints(run).back();
    run.start(file, {"--first", "checkpoint", "--frames", std::to_string(first + 100)});
    REQUIRE(run.wait_until([&] { return !checkpoints(run).empty() && checkpoints(run).front() > first; }));
    forget(run, "emptied", "middle.state", [&] {
        for (const auto& entry : std::filesystem::directory_iterator(run.path("kept")))
            if (entry.path().extension() == ".state") std::filesystem::remove(entry.path());
    });
    CHECK(run.wait() == exit_code::state_lost);
    INFO(run.log());
    CHECK_THAT(run.log(), !contains("is damaged"));
    REQUIRE(run.report()["state_lost_at"].size() == 1);
    CHECK(run.report()["state_lost_at"][0].get<u64>() > first);
}

#ifdef SLOW_FOLDER
TEST_CASE("a killed stage is replaced while the disk with the checkpoints does not reply") {
    run_fixture run;
    const std::string slow = run.path("kept") + ".slow";
    run.start(remembering(run, "slow", with_checkpoints(run), 200), {},
              {"LD_PRELOAD=" SLOW_FOLDER, "CAROUSEL_TEST_SLOW_FOLDER=" + run.path("kept")});
    REQUIRE(run.wait_until([&] { return !checkpoints(run).empty(); }));
    const i32 middle = run.pid_of("middle");
    REQUIRE(middle > 0);
    std::ofstream(slow) << "";
    REQUIRE(run.wait_until([&] { return std::filesystem::exists(run.path("kept") + ".reached"); }));
    const u64 listed = checkpoints(run).back();
    REQUIRE(::kill(middle, SIGKILL) == 0);
    const bool replaced =
        run.wait_until([&] { return run.pid_of("middle") > 0 && run.pid_of("middle") != middle; }, 5) &&
        makes_progress(run);
    CHECK(checkpoints(run).back() == listed);
    std::filesystem::remove(slow);
    CHECK(replaced);
    CHECK(run.wait_until([&] { return checkpoints(run).back() > listed; }));
    end_intact(run, 1, state_key);
}
#endif

TEST_CASE("a rebuild that finds no state in memory continues from the newest checkpoint") {
    run_fixture run;
    run.start(remembering(run, "forgot", with_checkpoints(run), 200), all_frames);
    // The newest may be for a frame that is uncertain, because words of the block are damaged.
    REQUIRE(run.wait_until([&] { return checkpoints(run).size() == 2; }));
    damage(run);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("the states continue from the checkpoint for that frame"));
    check_whole(run, frames, undisturbed_hash(frames, state_key), 0);
    CHECK(run.report()["state_lost_at"].empty());
}

TEST_CASE("frames whose states are gone are made again from a checkpoint, not given up") {
    run_fixture run;
    run.start(remembering(run, "queued", with_checkpoints(run)), all_frames);
    REQUIRE(run.wait_until([&] { return !checkpoints(run).empty(); }));
    forget(run, "queued", "numbers");
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(), !contains("is damaged") && contains("continue from the checkpoint"));
    CHECK(run.report()["dead_letters"].empty());
    check_whole(run, frames, undisturbed_hash(frames, state_key), 0);
}

TEST_CASE("without a checkpoint the states begin again, which the exit code and the report show") {
    for (const bool allowed : {false, true}) {
        run_fixture run;
        run.start(remembering(run, "fresh", allowed ? "allow_state_loss = true\n" : ""), all_frames);
        REQUIRE(run.wait_running());
        REQUIRE(makes_progress(run));
        damage(run);
        CHECK(run.wait() == (allowed ? exit_code::ok : exit_code::state_lost));
        INFO(run.log());
        const json r = run.report();
        check_undamaged(r);
        REQUIRE(r["state_lost_at"].size() == 1);
        CHECK(r["state_lost_at"][0].get<u64>() > 0);
        CHECK(r["frames"] == frames);
    }
}

TEST_CASE("a supervisor that takes over a run with fresh states still reports them") {
    run_fixture run;
    const std::string file = remembering(run, "twice", "supervisor_grace_s = 20\n");
    run.start(file);
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    damage(run);
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    run.start(file);
    REQUIRE(makes_progress(run));
    run.signal(SIGINT);
    CHECK(run.wait() == exit_code::state_lost);
    INFO(run.log());
    CHECK(run.report()["taken_over"] == 1);
    REQUIRE(run.report()["state_lost_at"].size() == 1);
    CHECK(run.report()["state_lost_at"][0].get<u64>() > 0);
}

TEST_CASE("a run that begins at a later frame without a checkpoint has lost its states") {
    run_fixture run;
    run.start(remembering(run, "later", ""), {"--frames", "150", "--first", "100"});
    CHECK(run.wait() == exit_code::state_lost);
    INFO(run.log());
    CHECK(run.report()["state_lost_at"] == json{100});
}

TEST_CASE("a run with fresh states is drained and continued by an upgrade") {
    run_fixture run;
    run.start(remembering(run, "drained", ""), {"--first", "100"});
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    std::string out;
    CHECK(run.command({"upgrade", "-p", "drained", "--drain"}, out) == exit_code::ok);
    INFO(out);
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    run.signal(SIGINT);
    CHECK(run.wait() == exit_code::state_lost);
    CHECK_THAT(run.log(), contains("fresh states at frame 100"));
    CHECK(run.report()["first"].get<u64>() > 100);
    CHECK(run.report()["state_lost_at"] == json{run.report()["first"]});
}
