// The supervisor itself is killed: stages continue to stream, a second `carousel run` of the same file takes
// the run over, and the sinks' ledgers show no disturbance. Here every supervisor is a process of the
// fixture, so that its death and its exit code are seen as a shell sees them.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>

#include "core/io.hpp"
#include "shm/process_id.hpp"
#include "tests/crash/crash_plan.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

constexpr u64 frames = 1600;  // 4 s at the pace of the disturbed runs
const std::vector<std::string> to_end{"--frames", std::to_string(frames)};

/// Slow enough to be disturbed; the hash of a number pipeline doesn't depend on its pace.
std::string paced(const std::string& name, const char* grace = "supervisor_grace_s = 20\n") {
    return number_pipeline(name, fmt::format("fps = 400\n{}", grace), "work_ms = 2\n");
}

const std::string& undisturbed_hash() {
    static const std::string hash = [] {
        run_fixture quiet;
        quiet.start(quiet.pipeline("calm", number_pipeline("calm")), to_end);
        REQUIRE(quiet.wait() == 0);
        return quiet.report()["image_hash"].get<std::string>();
    }();
    return hash;
}

const std::vector<std::string> stage_names{"numbers", "middle", "sink"};

std::vector<i32> pids_of(run_fixture& run) {
    std::vector<i32> pids;
    for (const std::string& s : stage_names) pids.push_back(run.pid_of(s));
    return pids;
}

void kill_supervisor(run_fixture& run) {
    REQUIRE(run.running());
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
}

bool is_gone(i32 pid) { return !shm::is_alive({pid, shm::start_time_of(pid)}); }

bool log_contains(const run_fixture& run, const std::string& text) {
    return run.log().find(text) != std::string::npos;
}

void check_whole(run_fixture& run) {
    const json r = run.report();
    INFO(run.log());
    REQUIRE(r.contains("frames"));
    CHECK(r["frames"] == frames);
    check_undamaged(r);
    CHECK(r["ending"] == "complete");
    CHECK(r["image_hash"] == undisturbed_hash());
    CHECK(run.leftovers() == "");
}

}  // namespace

TEST_CASE("stages continue without their supervisor, and a second one adopts them with their pids") {
    run_fixture run;
    const std::string file = run.pipeline("widowed", paced("widowed"));
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    const u64 delivered = run.ask({{"type", "ps"}})["pipeline"]["frames"];
    kill_supervisor(run);
    sleep_s(0.5);
    for (const i32 pid : before) CHECK_FALSE(is_gone(pid));
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    CHECK(run.wait_until([&] { return log_contains(run, "adopted widowed: 3 stages alive"); }));
    // 0.5 s at 400 frames/s
    CHECK(run.ask({{"type", "ps"}})["pipeline"]["frames"].get<u64>() > delivered + 50);
    CHECK(pids_of(run) == before);
    CHECK(run.wait() == 0);
    check_whole(run);
    const json r = run.report();
    CHECK(r["taken_over"] == 1);
    CHECK(r["restarts"] == 0);
    for (std::size_t k = 0; k < before.size(); ++k) CHECK(r["stages"][k]["pids"] == json{before[k]});
}

TEST_CASE("a stage that dies around its supervisor's death is replaced, the others keep their pids") {
    const auto [when, victim] = GENERATE(
        table<std::string, std::string>({{"before", "numbers"}, {"with", "middle"}, {"after", "sink"}}));
    CAPTURE(when, victim);
    run_fixture run;
    const std::string file = run.pipeline("both", paced("both"));
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    const i32 target = run.pid_of(victim);
    REQUIRE(target > 0);  // kill(0) would end this process
    if (when == "before") ::kill(target, SIGKILL);
    run.signal(SIGKILL);
    if (when == "with") ::kill(target, SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    if (when == "after") {
        sleep_s(0.1);
        ::kill(target, SIGKILL);
    }
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    CHECK(run.wait_until([&] { return log_contains(run, "adopted both: "); }));
    const std::vector<i32> after = pids_of(run);
    for (std::size_t k = 0; k < before.size(); ++k) {
        CAPTURE(stage_names[k]);
        CHECK((after[k] == before[k]) == (stage_names[k] != victim));
    }
    CHECK(run.wait() == 0);
    check_whole(run);
    CHECK(run.report()["restarts"] == 1);
    CHECK(run.report()["deaths"] == 1);
}

TEST_CASE("supervisors and stages killed at random lose nothing, and the counts continue") {
    constexpr int supervisor_kills = 10, stage_kills = 20;
    run_fixture run;
    const std::string file = run.pipeline("regents", paced("regents"));
    const std::vector<std::string> endless{"--frames", "100000000"};
    std::mt19937_64 random(test_seed());
    std::set<i32> hit;
    int kills = 0;
    run.start(file, endless);
    for (int round = 0; round < supervisor_kills; ++round) {
        REQUIRE(run.wait_running());
        // each before, at the same time as, or after the supervisor's end
        for (int k = 0; k < stage_kills / supervisor_kills; ++k) {
            const i32 pid = run.pid_of(stage_names[random() % 3]);
            if (pid > 0 && ::kill(pid, SIGKILL) == 0) kills += hit.insert(pid).second ? 1 : 0;
            if (random() % 2 == 0) sleep_s(static_cast<f64>(random() % 40) / 1000);
        }
        sleep_s(static_cast<f64>(random() % 30) / 1000);
        kill_supervisor(run);
        sleep_s(static_cast<f64>(random() % 100) / 1000);
        run.start(file, endless);
    }
    REQUIRE(run.wait_running());
    INFO(run.log());
    std::string out;
    CHECK(run.command({"down", "-p", "regents"}, out) == 0);
    CHECK(run.wait() == 0);
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    fmt::print("{} frames, {} stage kills at {}, {} supervisors\n", r["frames"].get<u64>(), kills,
               r["kills_at"].dump(), r["taken_over"].dump());
    check_undamaged(r);
    CHECK(r["taken_over"] == supervisor_kills);
    CHECK(r["restarts"].get<int>() >= kills);
    std::set<i32> pids;
    for (const json& s : r["stages"])
        for (const json& pid : s["pids"]) pids.insert(pid.get<i32>());
    for (const i32 pid : hit) CHECK(pids.count(pid) == 1);
    run_fixture quiet;
    quiet.start(quiet.pipeline("calm", number_pipeline("calm")),
                {"--frames", std::to_string(r["frames"].get<u64>())});
    REQUIRE(quiet.wait() == 0);
    CHECK(r["image_hash"] == quiet.report()["image_hash"]);
    CHECK(run.leftovers() == "");
}

TEST_CASE("a supervisor killed at each of its named steps has a successor that finishes the step") {
    using enum crash_point;
    run_fixture run;
    crash_plan plan(run.path("plan"));
    for (const crash_point point :
         {entry_prepared, entry_appointed, entry_doomed, words_revoked, words_requeued, death_judged,
          stage_spawned, entry_fenced, words_reclaimed, run_taken_over, stage_returned})
        // the first three appointments are the start
        plan.add("supervisor", point, "kill", plan.lines() == 0 ? 4 : 1);
    plan.write();
    const std::string file = run.pipeline("steps", paced("steps"));
    const std::vector<std::string> endless{"--frames", "100000000"};
    std::mt19937_64 random(test_seed());
    int starts = 0;
    const f64 until = seconds_now() + 60;
    const auto start = [&] {
        run.start(file, endless, {plan.environment()});
        ++starts;
    };
    for (start(); plan.pending_lines() != "" && seconds_now() < until;) {
        if (!run.running()) {
            REQUIRE(run.wait() == -SIGKILL);
            start();
        } else if (run.wait_until([&] { return !run.running() || run.pid_of("sink") > 0; }) &&
                   run.running() && run.wait_running(1)) {
            run.hit(stage_names[random() % 3], SIGKILL);
            sleep_s(0.03);
        }
    }
    CHECK(plan.pending_lines() == "");
    if (!run.running()) {
        REQUIRE(run.wait() == -SIGKILL);
        start();
    }
    REQUIRE(run.wait_running());
    std::string out;
    CHECK(run.command({"down", "-p", "steps"}, out) == 0);
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    fmt::print("{} frames, {} supervisors\n", r["frames"].get<u64>(), starts);
    CHECK(starts >= static_cast<int>(plan.lines()));
    check_undamaged(r);
    run_fixture quiet;
    quiet.start(quiet.pipeline("calm", number_pipeline("calm")),
                {"--frames", std::to_string(r["frames"].get<u64>())});
    REQUIRE(quiet.wait() == 0);
    CHECK(r["image_hash"] == quiet.report()["image_hash"]);
    CHECK(run.leftovers() == "");
}

TEST_CASE("a state file that could not be written is written again without another event") {
    run_fixture run;
    run.start(run.pipeline("unsaved", paced("unsaved")), {"--frames", "100000000"});
    REQUIRE(run.wait_running());
    const std::string file = run.path("runtime/carousel/unsaved/state.json");
    const std::string temporary = fmt::format("{}.{}.tmp", file, run.pid());
    // No file can be written there; unless the supervisor is just writing it.
    REQUIRE(run.wait_until([&] {
        std::error_code is_file;
        return std::filesystem::create_directory(temporary, is_file);
    }));
    const i32 dead = run.pid_of("middle");
    run.hit("middle", SIGKILL);
    REQUIRE(run.wait_until([&] { return run.pid_of("middle") != dead && run.wait_running(1); }));
    const std::string pid = std::to_string(run.pid_of("middle"));
    const auto is_saved = [&] { return read_file(file).value_or("").find(pid) != std::string::npos; };
    CHECK_FALSE(is_saved());
    REQUIRE(std::filesystem::remove(temporary));
    CHECK(run.wait_until(is_saved, 5));
    CHECK(log_contains(run, "count restarts and deaths from 0"));
    // reported after the file is in its place
    CHECK(run.wait_until([&] { return log_contains(run, "state.json is written again"); }, 5));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}

TEST_CASE("another pipeline can't take over a live run: refused with the difference") {
    run_fixture run;
    const std::string file = run.pipeline("mine", paced("mine"));
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    kill_supervisor(run);
    std::string out;
    CHECK(run.command({"ps"}, out) == 2);
    CHECK_THAT(out, contains("3 of its stages continue"));
    CHECK(run.command({"run", file, "--frames", to_end[1], "--set", "middle.work_ms=3"}, out) == 2);
    CHECK_THAT(out, contains("stage middle: settings.work_ms is 2 there and 3 here"));
    CHECK(run.command({"run", file, "--frames", "17"}, out) == 2);
    CHECK_THAT(out, contains("frames is " + to_end[1] + " there and 17 here"));
    for (const i32 pid : before) CHECK_FALSE(is_gone(pid));
    run.start(file, to_end);  // the right one
    REQUIRE(run.wait_running());
    CHECK(pids_of(run) == before);
    CHECK(run.wait() == 0);
    check_whole(run);
}

TEST_CASE("of two supervisors that take a run over at the same time, one succeeds, one is refused") {
    run_fixture run;
    const std::string file = run.pipeline("successors", paced("successors"));
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    kill_supervisor(run);
    run.start(file, to_end);
    std::string out;
    const int code = run.command({"run", file, "--frames", to_end[1]}, out);
    CAPTURE(out, run.log());
    if (code == 0) {  // it was quicker, and has run to the end
        CHECK_THAT(out, contains("adopted successors"));
        CHECK(run.wait() == 2);
        CHECK(log_contains(run, "already running"));
    } else {
        CHECK(code == 2);
        CHECK_THAT(out, contains("already running"));
        CHECK(run.wait() == 0);
        check_whole(run);
    }
    CHECK(run.leftovers() == "");
}

TEST_CASE("without a second supervisor the stages end after supervisor_grace_s without leftovers") {
    run_fixture run;
    run.start(run.pipeline("alone", paced("alone", "supervisor_grace_s = 3\n")), {});
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    const bool one_is_stopped = GENERATE(false, true);
    kill_supervisor(run);
    REQUIRE(before[1] > 0);
    if (one_is_stopped) ::kill(before[1], SIGSTOP);
    sleep_s(0.3);
    for (const i32 pid : before) CHECK_FALSE(is_gone(pid));
    if (one_is_stopped) {
        CHECK(run.wait_until([&] { return is_gone(before[0]) && is_gone(before[2]); }, 15));
        CHECK_FALSE(run.leftovers().empty());  // what it still uses stays until it continues
        ::kill(before[1], SIGCONT);
    }
    CHECK(run.wait_until([&] { return run.leftovers().empty(); }, 15));
    CHECK(run.leftovers() == "");
}

TEST_CASE("a run that is through when its supervisor dies is kept for the next one, which reports it") {
    run_fixture run;
    const std::string file = run.pipeline("late", paced("late"));
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    REQUIRE(run.wait_until([&] {
        return run.ask({{"type", "ps"}})["pipeline"].value("frames", u64{0}) > 300;
    }));
    const shm::segment s = map_block(run);
    kill_supervisor(run);
    REQUIRE(run.wait_until([&] { return ring::load(link_of(s, "middle").tail) >= frames; }));
    for (const i32 pid : before) CHECK_FALSE(is_gone(pid));
    run.start(file, to_end);
    CHECK(run.wait() == 0);
    CHECK(log_contains(run, "adopted late: 3 stages alive"));
    check_whole(run);
}

TEST_CASE("with no stage left alive a new run starts and reports it") {
    run_fixture run;
    const std::string file = run.pipeline("empty", paced("empty"));
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    // a leader may be a zombie while another thread of its process is still dying
    std::vector<shm::unique_fd> processes;
    for (const i32 pid : before) processes.emplace_back(shm::open_pidfd({pid, shm::start_time_of(pid)}));
    kill_supervisor(run);
    for (const shm::unique_fd& process : processes) shm::signal_pidfd(process.get(), SIGKILL);
    REQUIRE(run.wait_until([&] {
        return std::all_of(processes.begin(), processes.end(), [](const shm::unique_fd& process) {
            return supervisor::has_ended(process.get());
        });
    }));
    run.start(file, to_end);
    CHECK(run.wait() == 0);
    CHECK(log_contains(run, "A new run starts"));
    check_whole(run);
    CHECK(run.report()["taken_over"] == 0);
}

TEST_CASE("a stopped supervisor keeps its run: no other takes it over, and it continues") {
    run_fixture run;
    const std::string file =
        run.pipeline("asleep", paced("asleep", "supervisor_grace_s = 0.5\nframe_timeout_ms = 1000\n"));
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    run.signal(SIGSTOP);
    REQUIRE(before[1] > 0);
    ::kill(before[1], SIGKILL);
    std::string out;
    CHECK(run.command({"run", file, "--frames", to_end[1]}, out) == 2);
    CHECK_THAT(out, contains("already running"));
    sleep_s(2.0);  // past the grace time and every deadline
    run.signal(SIGCONT);
    REQUIRE(run.wait_until([&] { return run.pid_of("middle") > 0 && run.pid_of("middle") != before[1]; }));
    CHECK(run.pid_of("numbers") == before[0]);
    CHECK(run.pid_of("sink") == before[2]);
    CHECK(run.wait() == 0);
    check_whole(run);
}

TEST_CASE("output of a stage without a supervisor is in the next one's log, and its new pipe works") {
    run_fixture run;
    const std::string file = run.pipeline("voices", paced("voices") + "print = true\n");
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    kill_supervisor(run);
    sleep_s(0.3);
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    CHECK(run.wait() == 0);
    CHECK(log_contains(run, "the supervisor has ended"));
    CHECK(log_contains(run, fmt::format("frame {}", frames - 1)));
    check_whole(run);
}

TEST_CASE("a held stage stays held through its supervisor's death") {
    run_fixture run;
    const std::string file = run.pipeline("held", paced("held"));
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    std::string out;
    REQUIRE(run.command({"stop", "sink", "-p", "held"}, out) == 0);
    kill_supervisor(run);
    run.start(file, to_end);
    REQUIRE(run.wait_until([&] { return log_contains(run, "adopted held: 3 stages alive"); }));
    CHECK(run.stage("sink")["state"] == "stopped");
    // the kernel continues an orphaned process group
    REQUIRE(run.wait_until([&] { return shm::is_stopped(before[2]); }));
    CHECK(run.command({"cont", "sink", "-p", "held"}, out) == 0);
    CHECK(run.wait() == 0);
    check_whole(run);
    CHECK(run.report()["restarts"] == 0);
}
