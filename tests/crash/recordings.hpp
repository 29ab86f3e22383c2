#pragma once
// Pipelines that record and that play, and the campaign: record, kill the recorder, play, compare.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

inline constexpr const char* recorded_fragment = "[link.fragment]\nrecord = true\n";

/// rec.mcap -> display
inline std::string playing_pipeline(const std::string& name, const std::string& keys) {
    return fmt::format(
        "[pipeline]\nname = \"{}\"\ndevice = \"cpu\"\nsize = [160, 90]\n[[stage]]\nname = \"tape\"\nrun = "
        "\"carousel-replay\"\nfile = \"rec.mcap\"\n{}[[stage]]\nname = \"display\"\nrun = "
        "\"carousel-display\"\ninputs = [\"tape\"]\nout = \"\"\n",
        name, keys);
}

/// Records `frames` frames of two rings at `fps`, kills the recorder `kills` times, plays what was recorded.
inline void check_killed_recorder(u64 frames, u32 kills, u32 fps) {
    run_fixture run;
    const std::string more = fmt::format("fps = {}\n", fps);
    run.start(run.pipeline("rec", picture_pipeline("rec", more) + recorded_fragment +
                                      "[link.vertex]\nrecord = true\n"),
              {"--frames", std::to_string(frames)});
    REQUIRE(run.wait_running());
    std::mt19937_64 random(test_seed());
    // The last kill comes well before the last frame: random pauses add up to more than their mean.
    const f64 pause = 0.8 * static_cast<f64>(frames) / fps / (kills + 1);
    i32 killed = 0;
    for (u32 k = 0; k < kills; ++k) {
        sleep_s(pause * (0.5 + static_cast<f64>(random() % 1000) / 1000));
        const bool there = run.wait_until(
            [&] {
                const i32 pid = run.pid_of("record");
                if (pid <= 0 || pid == killed) return false;
                killed = pid;
                return true;
            },
            10);
        REQUIRE(there);
        ::kill(killed, SIGKILL);
    }
    CHECK(run.wait(120) == 0);
    INFO(run.log());
    const nlohmann::json recorded = run.report();
    check_undamaged(recorded);
    CHECK(recorded["frames"] == frames);
    CHECK(recorded["restarts"] == kills);
    REQUIRE(std::filesystem::exists(run.path("rec.mcap")));

    run.start(run.pipeline("play", playing_pipeline("play", "ring = \"fragment\"\n")));
    CHECK(run.wait(120) == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(run.report()["frames"] == frames);
    CHECK(run.report()["image_hash"].is_string());
    CHECK(run.report()["image_hash"] == recorded["image_hash"]);
    CHECK(run.leftovers() == "");
}

}  // namespace carousel::test
