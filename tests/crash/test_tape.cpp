// `carousel record`: a running pipeline recorded from outside, through a port or by its newest frames.
#include <filesystem>
#include <memory>

#include "core/errors.hpp"
#include "tests/crash/port_programs.hpp"
#include "tests/crash/recordings.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

constexpr const char* archive = "[[stage]]\nname = \"archive\"\nrun = \"port\"\ninputs = [\"fragment\"]\n";

external_program records(const run_fixture& run, const std::string& output, std::vector<std::string> words) {
    words.insert(words.begin(), {"record"});
    return {run, output, "carousel", words};
}

void check_played(run_fixture& run, const nlohmann::json& recorded) {
    run.start(run.pipeline("play", playing_pipeline("play", "")));
    CHECK(run.wait(120) == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(run.report()["frames"] == recorded["frames"]);
    CHECK(run.report()["image_hash"] == recorded["image_hash"]);
    CHECK(run.leftovers() == "");
}

}  // namespace

TEST_CASE("a port's external recording covers the whole run under kills and plays the same") {
    run_fixture run;
    run.start(run.pipeline("rec", picture_pipeline("rec", "fps = 60\n") + archive), {"--frames", "150"});
    const std::vector<std::string> words{"archive", "--out", run.path("rec.mcap"), "-p", "rec",
                                         "--wait",  "20"};
    auto now = std::make_unique<external_program>(records(run, "said", words));
    for (const char* next : {"said1", "said2", "said3"}) {
        const bool there = run.wait_until([&] { return std::filesystem::exists(run.path("rec.mcap")); });
        INFO(now->output() << run.log());
        REQUIRE(there);
        sleep_s(0.3);
        now->signal(SIGKILL);
        CHECK(now->wait(10) == -SIGKILL);
        now = std::make_unique<external_program>(records(run, next, words));
    }
    CHECK(run.wait(120) == 0);
    INFO(run.log());
    const nlohmann::json recorded = run.report();
    check_undamaged(recorded);
    CHECK(recorded["frames"] == 150);
    CHECK(now->wait(20) == 0);
    CHECK_THAT(now->output(), contains("rec.mcap: 150 frames"));
    check_played(run, recorded);
}

TEST_CASE("a port's recording has the parameters of each frame for its readers") {
    run_fixture run;
    run.start(run.pipeline("rec", picture_pipeline("rec", "fps = 60\n") + archive), {"--frames", "90"});
    external_program tape =
        records(run, "tape", {"archive", "--out", run.path("rec.mcap"), "-p", "rec", "--wait", "20"});
    REQUIRE(run.wait_until(
        [&] { return run.stage("fragment")["frames"].is_number() && run.stage("fragment")["frames"] > 5; }));
    std::string out;
    REQUIRE(run.command({"set", "ambient=0.25", "-p", "rec"}, out) == 0);
    CHECK(run.wait(60) == 0);
    INFO(out << run.log());
    check_undamaged(run.report());
    CHECK(tape.wait(20) == 0);

    // At 30 frames/s the reader of the newest frame, which no stage waits for, has 3 s to attach.
    run.start(run.pipeline("play", playing_pipeline("play", "") +
                                       "[[stage]]\nname = \"eye\"\nrun = \"port\"\ninputs = [\"tape\"]\n"),
              {"--fps", "30"});
    external_program eye(run, "eye", "carousel-test-port-io", {"made-with", "play", "eye"});
    external_program newest(run, "newest", "carousel-test-port-io", {"newest-made-with", "play", "tape"});
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    CHECK(eye.wait(20) == 0);
    CHECK(newest.wait(20) == 0);
    CHECK_THAT(eye.output(), contains("frame 0 of set 0: 0.1"));
    CHECK_THAT(eye.output(), contains("frame 89 of set 1: 0.25"));
    CHECK_THAT(newest.output(), contains(" of set 1: 0.25"));
}

TEST_CASE("newest frames are recorded without blocking a stage, and missed ones are counted") {
    run_fixture run;
    run.start(run.pipeline("some", picture_pipeline("some", "fps = 100\n")), {});
    REQUIRE(run.wait_running());
    external_program some = records(
        run, "said",
        {"fragment", "--latest", "--out", run.path("rec.mcap"), "-p", "some", "--compression", "none"});
    REQUIRE(run.wait_until([&] {
        std::error_code none;
        return std::filesystem::file_size(run.path("rec.mcap"), none) + 1 > 300'000;
    }));
    some.signal(SIGINT);
    CHECK(some.wait(20) == 0);
    CHECK_THAT(some.output(), contains("were missed by this process"));
    external_program again =
        records(run, "again", {"sharpen", "--latest", "--out", run.path("x.mcap"), "-p", "some"});
    CHECK(again.wait(20) == exit_code::usage);
    CHECK_THAT(again.output(), contains("no stage \"sharpen\" with an output in some"));
    external_program other = records(run, "other", {"archive", "--out", run.path("x.mcap"), "-p", "some"});
    CHECK(other.wait(20) == exit_code::usage);
    CHECK_THAT(other.output(), contains("the pipeline some has no port \"archive\""));
    external_program text =
        records(run, "text", {"fragment", "--latest", "--out", run.path("x.txt"), "-p", "some"});
    CHECK(text.wait(20) == exit_code::usage);
    CHECK_THAT(text.output(), contains("expected the name of an .mcap file"));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    run.start(run.pipeline("play", playing_pipeline("play", "")));
    CHECK(run.wait(60) == 0);
    check_undamaged(run.report());
    CHECK(run.report()["frames"] >= 5);
}

TEST_CASE("a file that is there already is not recorded over") {
    run_fixture run;
    std::ofstream(run.path("rec.mcap")) << "somebody's\n";
    run.start(run.pipeline("over", picture_pipeline("over", "fps = 60\n")), {});
    REQUIRE(run.wait_running());
    external_program some =
        records(run, "said", {"fragment", "--latest", "--out", run.path("rec.mcap"), "-p", "over"});
    CHECK(some.wait(20) == exit_code::usage);
    CHECK_THAT(some.output(), contains("already exists: remove it, or record into another file"));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}
