// A recorder is killed again and again: its recording is played, and the pictures are those of the run.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/crash/recordings.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
namespace fs = std::filesystem;

}  // namespace

TEST_CASE("a recording whose recorder was killed matches the run frame by frame") {
    check_killed_recorder(150, 5, 100);
}

TEST_CASE("a recording is played in parts, in a loop, and up to its first damaged part") {
    run_fixture run;
    // each frame has its own parameters, which are restored with it
    run.start(
        run.pipeline("rec", picture_pipeline("rec", "record_compression = \"none\"\n") + recorded_fragment),
        {"--frames", "40"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(run.report()["lost"] == 0);
    const std::string tape = run.path("rec.mcap");
    REQUIRE(fs::exists(tape));

    const auto play = [&](const std::string& keys, const std::vector<std::string>& options = {}) {
        run.start(run.pipeline("play", playing_pipeline("play", keys)), options);
        const int code = run.wait();
        return code;
    };
    CHECK(play("first = 10\ncount = 20\n") == 0);
    CHECK(run.report()["frames"] == 20);
    CHECK(play("first = 39\nloop = true\n", {"--frames", "50"}) == 0);
    CHECK(run.report()["frames"] == 50);
    CHECK(play("first = 40\n") == exit_code::usage);
    CHECK_THAT(run.log(), contains("rec.mcap has 40 frames, so first = 40 is beyond its end"));
    CHECK(play("rnig = \"fragment\"\n") == exit_code::usage);
    CHECK(play("ring = \"fragmnet\"\n") == exit_code::usage);
    CHECK_THAT(run.log(), contains("did you mean"));

    const std::string whole = read_file(tape).value();
    std::string of_another_version = whole;
    const std::string version = {
        "version\x01\0\0\0"
        "1",
        12};
    REQUIRE(whole.find(version) != std::string::npos);
    of_another_version[whole.find(version) + version.size() - 1] = '2';
    const auto put = [&](const std::string& text) { std::ofstream(tape, std::ios::binary) << text; };
    put(of_another_version);
    CHECK(play("") == exit_code::usage);
    CHECK_THAT(run.log(), contains("rec.mcap is a recording of version 2; this program reads version 1"));
    for (const std::size_t length : {30U, 60U}) {  // in the first words of the file
        put(whole.substr(0, length));
        CHECK(play("") == exit_code::usage);
        CHECK_THAT(run.log(), contains("rec.mcap has no description of its contents"));
    }
    put(whole);
    fs::resize_file(tape, fs::file_size(tape) / 2 - 20'000);  // in the middle of a frame
    CHECK(play("") == 0);
    CHECK_THAT(
        run.log(),
        contains("rec.mcap is incomplete (its recorder was killed): its 19 complete frames are played"));
    CHECK(run.report()["frames"] == 19);

    // an existing recording is not overwritten
    run.start(run.pipeline("rec", picture_pipeline("rec") + recorded_fragment), {"--frames", "40"});
    CHECK(run.wait() == exit_code::usage);
    CHECK_THAT(run.log(), contains("rec.mcap already exists: remove it, or record into another file"));
}

TEST_CASE("a recorded ring of states is played as the same frames, each with its state") {
    run_fixture run;
    const std::string state = "state = true\n", tape = run.path("states.mcap");
    run.start(run.pipeline("rec", number_pipeline("rec", "fps = 400\n", state, state, state)),
              {"--frames", "100", "--record", "middle.state,numbers.state", "--record-to", tape});
    REQUIRE(run.wait_running());
    run.hit("record", SIGKILL);
    CHECK(run.wait() == 0);
    const std::string recorded = run.report()["image_hash"];
    // The middle stage gives out the first word of its state, so both sinks compute the same states from it.
    run.start(
        run.pipeline("play", fmt::format("[pipeline]\nname = \"play\"\n[[stage]]\nname = \"tape\"\nrun = "
                                         "\"carousel-replay\"\nfile = \"{}\"\nring = \"middle.state\"\n",
                                         tape) +
                                 number_stage("sink", "tape", "sink = true\n" + state)));
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(run.report()["frames"] == 100);
    CHECK(run.report()["image_hash"] == recorded);
}

TEST_CASE("a user's recorder takes the newest frames and blocks no stage") {
    run_fixture run;
    const std::string archive = fmt::format(
        "[[stage]]\nname = \"archive\"\nrun = \"carousel-record\"\ninputs = [\"fragment\"]\nout = \"{}\"\n"
        "group = \"latest\"\n",
        run.path("rec.mcap"));
    run.start(run.pipeline("newest", picture_pipeline("newest", "fps = 50\n") + archive));
    REQUIRE(run.wait_running());
    const auto delivered = [&] { return run.stage("display").value("frames", u64{0}); };
    CHECK(run.wait_until([&] { return fs::exists(run.path("rec.mcap")) && delivered() > 5; }));
    run.hit("archive", SIGSTOP);  // no stage waits for it
    const u64 then = delivered();
    CHECK(run.wait_until([&] { return delivered() > then + 60; }));
    run.hit("archive", SIGCONT);
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_undamaged(run.report());
    const u64 made = run.report()["frames"];
    run.start(run.pipeline("play", playing_pipeline("play", "")));
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(run.report()["frames"] > 0);
    CHECK(run.report()["frames"] < made);
}

TEST_CASE("a damaged frame of a recording is given up, and the others are played") {
    run_fixture run;
    run.start(
        run.pipeline("rec", picture_pipeline("rec", "record_compression = \"none\"\n") + recorded_fragment),
        {"--frames", "20"});
    CHECK(run.wait() == 0);
    const std::string tape = run.path("rec.mcap");
    {
        std::fstream file(tape, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(fs::file_size(tape) / 20 * 9 + 20000));
        file.put('\x5a').put('\xa5');
    }
    run.start(run.pipeline("play", playing_pipeline("play", "")));
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("is damaged: its checksum is wrong"));
    CHECK(run.report()["frames"] == 20);
    CHECK(run.report()["lost"] == 0);
    CHECK(run.report()["dead_letter_count"] == 1);
}
