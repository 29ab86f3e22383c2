// A recorder is part of a run: its supervisor is killed, or all of its processes at once. What is on the disk
// is intact up to its end, and a second supervisor's run continues the file.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/crash/recorded_frames.hpp"
#include "tests/crash/run_fixture.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::string recording_pipeline(const std::string& name, const std::string& keys = "") {
    return number_pipeline(name, keys) + "[link.middle]\nrecord = true\n";
}

/// The result of the sink of such a run after this number of frames.
std::string calm_numbers(u64 frames) {
    run_fixture calm;
    calm.start(calm.pipeline("calm", number_pipeline("calm")), {"--frames", std::to_string(frames)});
    REQUIRE(calm.wait() == 0);
    return calm.report()["image_hash"];
}

/// Played to a sink like that of the recorded run, the file reproduces that run.
void check_played_numbers(run_fixture& run, const std::string& recording, u64 frames) {
    const std::string text = fmt::format(
        "[pipeline]\nname = \"play\"\ndevice = \"cpu\"\n[[stage]]\nname = \"tape\"\nrun = "
        "\"carousel-replay\"\nfile = \"{}\"\n",
        recording);
    run.start(run.pipeline("play", text + number_stage("sink", "tape", "sink = true\n")));
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == frames);
    CHECK(r["image_hash"] == calm_numbers(frames));
}

u64 delivered(run_fixture& run) {
    const json p = run.ask({{"type", "ps"}});
    return p.contains("pipeline") ? p["pipeline"]["frames"].get<u64>() : 0;
}

bool has_gone(i32 pid) { return !shm::is_alive({pid, shm::start_time_of(pid)}); }

}  // namespace

TEST_CASE("a recording continues in its file after a takeover, with or without its recorder") {
    constexpr u64 frames = 300;
    run_fixture run;
    const std::string file =
        run.pipeline("kept", recording_pipeline("kept", "fps = 100\nsupervisor_grace_s = 20\n"));
    run.start(file, {"--frames", std::to_string(frames)});
    for (const bool recorder_too : {false, true}) {
        REQUIRE(run.wait_running());
        const u64 before = delivered(run);
        REQUIRE(run.wait_until([&] { return delivered(run) >= before + 20; }));
        const i32 recorder = run.pid_of("record");
        REQUIRE(recorder > 0);
        run.signal(SIGKILL);
        if (recorder_too) ::kill(recorder, SIGKILL);
        REQUIRE(run.wait() == -SIGKILL);
        CHECK_FALSE(read_recording(run.path("kept.mcap")).ended);
        run.start(file, {"--frames", std::to_string(frames)});
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == frames);
    CHECK(r["taken_over"] == 2);
    const recorded_frames on_disk = read_recording(run.path("kept.mcap"));
    CHECK(on_disk.ended);
    CHECK(is_whole(on_disk));
    CHECK(on_disk.facts.size() == frames);
    check_played_numbers(run, "kept.mcap", frames);
    CHECK(run.leftovers() == "");
}

TEST_CASE("killing all processes of a recording run leaves a file complete up to its last frame") {
    std::mt19937_64 random(test_seed());
    for (int round = 0; round < 2; ++round) {
        run_fixture run;
        const std::string file = run.pipeline("wiped", recording_pipeline("wiped"));
        run.start(file);
        REQUIRE(run.wait_running());
        const u64 enough = 20 + random() % 100;
        REQUIRE(run.wait_until([&] { return delivered(run) >= enough; }));
        std::vector<i32> pids{run.pid()};
        for (const json& s : run.stages()) pids.push_back(s["pid"]);
        REQUIRE(std::all_of(pids.begin(), pids.end(), [](i32 pid) { return pid > 0; }));
        const u64 counted = delivered(run);
        for (const i32 pid : pids) ::kill(pid, SIGKILL);
        REQUIRE(run.wait() == -SIGKILL);
        REQUIRE(run.wait_until([&] { return std::all_of(pids.begin() + 1, pids.end(), has_gone); }));
        const recorded_frames on_disk = read_recording(run.path("wiped.mcap"));
        CHECK_FALSE(on_disk.ended);
        CHECK(is_whole(on_disk));
        CHECK(on_disk.facts.size() >= counted);
        check_played_numbers(run, "wiped.mcap", on_disk.facts.size());
        CHECK_THAT(
            run.log(),
            contains(fmt::format("is incomplete (its recorder was killed): its {} complete frames are played",
                                 on_disk.facts.size())));
        // Nothing of that run is left to continue with: another run never overwrites an existing file.
        run.start(file);
        CHECK(run.wait() == exit_code::usage);
        CHECK_THAT(run.log(), contains("wiped.mcap already exists: remove it, or record into another file"));
        CHECK(read_recording(run.path("wiped.mcap")).facts.size() == on_disk.facts.size());
    }
}

TEST_CASE("the recorded states of a stage that is killed are those of an undisturbed run") {
    const auto recorded = [](const std::string& name, u32 kills) {
        run_fixture run;
        run.start(run.pipeline(name, number_pipeline(name, "fps = 200\n", "state = true\n") +
                                         "[link.middle.state]\nrecord = true\n"),
                  {"--frames", "200"});
        REQUIRE(run.wait_running());
        i32 last = 0;
        for (u32 k = 0; k < kills; ++k)
            REQUIRE(run.wait_until([&] {
                const i32 pid = run.pid_of("middle");
                return pid > 0 && std::exchange(last, pid) != pid && ::kill(pid, SIGKILL) == 0;
            }));
        CHECK(run.wait() == 0);
        INFO(run.log());
        check_undamaged(run.report());
        CHECK(run.report()["restarts"] == kills);
        const recorded_frames on_disk = read_recording(run.path(name + ".mcap"), true);
        CHECK(is_whole(on_disk));
        return on_disk.slots;
    };
    const auto calm = recorded("calm", 0);
    REQUIRE(calm.size() == 200);
    CHECK(calm.front() != calm.back());
    CHECK((recorded("killed", 3) == calm));
}
