// `carousel record` of several rings: the newest frames of each in one file, while its recorder is killed.
#include <filesystem>
#include <memory>

#include "core/errors.hpp"
#include "tests/crash/port_programs.hpp"
#include "tests/crash/recordings.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

external_program records_rings(const run_fixture& run, const std::string& output,
                               std::vector<std::string> words) {
    words.insert(words.begin(), {"record", "-p", "rings"});
    return {run, output, "carousel", words};
}

u64 size_of_tape(const run_fixture& run) {
    std::error_code none;
    const auto size = std::filesystem::file_size(run.path("rec.mcap"), none);
    return none ? 0 : size;
}

}  // namespace

TEST_CASE("newest frames of several rings go into one file under kills, and each ring plays") {
    run_fixture run;
    run.start(run.pipeline("rings", picture_pipeline("rings", "fps = 100\n")), {});
    REQUIRE(run.wait_running());
    const std::vector<std::string> words{"fragment",           "vertex",        "--latest", "--out",
                                         run.path("rec.mcap"), "--compression", "none"};
    auto now = std::make_unique<external_program>(records_rings(run, "said", words));
    for (const char* next : {"said1", "said2", "said3"}) {
        const u64 before = size_of_tape(run);
        REQUIRE(run.wait_until([&] { return size_of_tape(run) > before + 300'000; }));
        now->signal(SIGKILL);
        CHECK(now->wait(10) == -SIGKILL);
        now = std::make_unique<external_program>(records_rings(run, next, words));
    }
    const u64 before = size_of_tape(run);
    REQUIRE(run.wait_until([&] { return size_of_tape(run) > before + 300'000; }));
    now->signal(SIGINT);
    CHECK(now->wait(20) == 0);
    CHECK_THAT(now->output(), contains("were missed by this process, which wrote "));
    CHECK_THAT(now->output(), contains(" of fragment, "));
    CHECK_THAT(now->output(), contains(" of vertex"));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_undamaged(run.report());

    for (const char* ring : {"fragment", "vertex"}) {
        CAPTURE(ring);
        const std::string keys = fmt::format("ring = \"{}\"\n", ring);
        std::string playing = playing_pipeline("play", keys);
        if (ring ==
            std::string("vertex"))  // not a picture: a run that plays it alone needs a stage that reads it
            playing = playing.substr(0, playing.find("[[stage]]\nname = \"display\"")) +
                      "[[stage]]\nname = \"archive\"\nrun = \"carousel-record\"\nout = \"again.mcap\"\n"
                      "inputs = [\"tape\"]\n";
        run.start(run.pipeline("play", playing));
        CHECK(run.wait(60) == 0);
        INFO(run.log());
        check_undamaged(run.report());
        CHECK(run.report()["frames"] >= 4);
    }
}

TEST_CASE("several rings without --latest, or a duplicate ring, are refused with the alternative") {
    run_fixture run;
    run.start(run.pipeline("rings", picture_pipeline("rings", "fps = 20\n")), {});
    REQUIRE(run.wait_running());
    const std::string out = run.path("rec.mcap");
    external_program both = records_rings(run, "both", {"fragment", "vertex", "--out", out});
    CHECK(both.wait(20) == exit_code::usage);
    CHECK_THAT(both.output(), contains("run = \"port\" inputs = [\"fragment\", \"vertex\"]"));
    CHECK_THAT(both.output(), contains("--record fragment,vertex --record-to " + out));
    CHECK_THAT(both.output(), contains("the newest frames of each, use --latest"));
    external_program twice = records_rings(run, "twice", {"vertex", "vertex", "--latest", "--out", out});
    CHECK(twice.wait(20) == exit_code::usage);
    CHECK_THAT(twice.output(), contains("vertex is named twice"));
    external_program none = records_rings(run, "none", {"vertex", "vortex", "--latest", "--out", out});
    CHECK(none.wait(20) == exit_code::usage);
    CHECK_THAT(none.output(), contains("no stage \"vortex\" with an output in rings"));
    CHECK(size_of_tape(run) == 0);
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}

TEST_CASE("rings that only one port reads are recorded by that port, each frame once") {
    const auto place = [](const char* name, const char* inputs) {
        return fmt::format("[[stage]]\nname = \"{}\"\nrun = \"port\"\ninputs = {}\n", name, inputs);
    };
    run_fixture run;
    std::string text = picture_pipeline("rings", "fps = 60\n") +
                       place("archive", "[\"fragment\", \"vertex\"]") + place("eye", "[\"vertex\"]");
    run.start(run.pipeline("rings", text), {"--frames", "40"});
    REQUIRE(run.wait_until([&] { return run.stage("fragment")["state"] == "running"; }));
    const std::string out = run.path("rec.mcap");
    external_program all = records_rings(run, "all", {"vertex", "fragment", "--out", out});
    external_program one = records_rings(run, "one", {"vertex", "--out", run.path("one.mcap")});
    const int code = run.wait();
    INFO(all.output() << one.output() << run.log());
    CHECK(code == 0);
    check_undamaged(run.report());
    CHECK(all.wait(20) == 0);
    CHECK(one.wait(20) == 0);
    CHECK_THAT(all.output(), contains("rec.mcap: 40 frames"));
    CHECK_THAT(one.output(), contains("one.mcap: 40 frames"));

    text += place("other", "[\"vertex\"]");
    run.start(run.pipeline("rings", text), {});
    REQUIRE(run.wait_until([&] { return run.stage("fragment")["state"] == "running"; }));
    external_program which = records_rings(run, "which", {"vertex", "--out", run.path("which.mcap")});
    CHECK(which.wait(20) == exit_code::usage);
    CHECK_THAT(which.output(), contains("eye, other have those rings as inputs: name one"));
    run.signal(SIGTERM);
    run.signal(SIGTERM);
    (void)run.wait();
}

TEST_CASE("one ring without --latest is also refused, with the suggestion of what to write") {
    run_fixture run;
    run.start(run.pipeline("rings", picture_pipeline("rings", "fps = 20\n")), {});
    REQUIRE(run.wait_running());
    const std::string out = run.path("rec.mcap");
    external_program one = records_rings(run, "one", {"fragment", "--out", out});
    CHECK(one.wait(20) == exit_code::usage);
    CHECK_THAT(one.output(), contains("fragment is a ring of rings, not a reading port"));
    CHECK_THAT(one.output(),
               contains("run = \"port\" inputs = [\"fragment\"] to the pipeline file of rings"));
    CHECK_THAT(one.output(), contains("`carousel record archive --out " + out + " -p rings`"));
    CHECK_THAT(one.output(), contains("--record fragment --record-to " + out));
    CHECK_THAT(one.output(), contains("the newest frames of it, use --latest"));
    // for a name that is not a ring there is no such advice
    external_program none = records_rings(run, "none", {"display", "--out", out});
    CHECK(none.wait(20) == exit_code::usage);
    CHECK_THAT(none.output(), contains("\"display\" is a stage of rings") && !contains("--latest"));
    CHECK(size_of_tape(run) == 0);
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}
