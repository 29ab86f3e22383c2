// A frame that ends its stage's process each time is saved, and the stage can be run on it alone.
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/errors.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
namespace fs = std::filesystem;

/// numbers -> overrun -> sink: frame 7 is read past its end.
std::string overrun_pipeline(const std::string& name, const std::string& keys = "") {
    return fmt::format(
               "[pipeline]\nname = \"{0}\"\ndevice = \"cpu\"\nsize = [32, 16]\n{2}\n[[stage]]\nname = "
               "\"numbers\"\nrun = \"{1}/carousel-test-number\"\n[[stage]]\nname = \"overrun\"\nrun = "
               "\"{1}/carousel-test-overrun\"\ninputs = [\"numbers\"]\nlie = 7\nmax_attempts = 2\n",
               name, programs(), keys) +
           number_stage("sink", "overrun", "sink = true\n");
}

/// "overrun_stage.cpp:28", from the mark in its source.
std::string place_of_bug() {
    std::ifstream in(OVERRUN_SOURCE);
    int number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.find("// the bug") != std::string::npos) return fmt::format("overrun_stage.cpp:{}", number);
    }
    return "no mark in " OVERRUN_SOURCE;
}

}  // namespace

TEST_CASE("a given-up frame is saved, and its replay under a sanitizer finds the line at fault") {
    run_fixture run;
    run.start(run.pipeline("letters", overrun_pipeline("letters")), {"--frames", "30"});
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    CHECK(run.report()["lost"] == 0);
    CHECK(run.leftovers() == "");
    const std::string dead_letter = run.path("runtime") + "/carousel/letters/dead-letters/overrun-7";
    CHECK(fs::exists(dead_letter + "/letter.json"));
    CHECK(fs::file_size(dead_letter + "/input-0.bin") == 512);  // the status word's slot, and the plane

    std::string out;
    CHECK(run.command({"replay"}, out) == exit_code::ok);
    CHECK_THAT(out, contains("overrun-7"));
    // as it died: by its own signal, not by the command's code
    CHECK(run.command({"replay", "--dead-letter", "7"}, out) == -SIGSEGV);
    CHECK_THAT(out, contains("replaying frame 7 of stage overrun on CPU"));
    CHECK(run.command({"replay", "--dead-letter", "7", "--prefix", "env 'OVERRUN_MENDED=a word'"}, out) == 0);
    CHECK_THAT(out, contains("frame 7 of stage overrun succeeded"));
    CHECK(run.command({"replay", "--dead-letter", "8"}, out) == exit_code::usage);
    CHECK_THAT(out, contains("no saved frame 8"));

#ifdef OVERRUN_SANITIZED  // in a build that is sanitised as a whole the stage has no program for it
    if (std::system("valgrind --version >/dev/null 2>&1") == 0) {
        CHECK(run.command({"replay", "--dead-letter", "7", "--prefix", "valgrind"}, out) != 0);
        CHECK_THAT(out, contains("Invalid read of size"));
        CHECK_THAT(out, contains("overrun_stage"));
    }
    const std::string sanitized = OVERRUN_SANITIZED;
    REQUIRE(fs::exists(sanitized));
    CHECK(run.command({"replay", "--dead-letter", "7", "--program", sanitized}, out) != 0);
    CHECK_THAT(out, contains("heap-buffer-overflow"));
    CHECK_THAT(out, contains(place_of_bug()));
#endif
    CHECK(run.command({"clean"}, out) == 0);
    CHECK_THAT(out, contains("removed dead letters"));
    CHECK(!fs::exists(dead_letter));
}

TEST_CASE("a source that dies of a number is kept without inputs") {
    run_fixture run;
    run.start(run.pipeline("source", number_pipeline("source", "", "", "die_at = 5\nmax_attempts = 2\n")),
              {"--frames", "20"});
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    std::string out;
    CHECK(run.command({"replay", "--dead-letter", "5", "-p", "source"}, out) == -SIGABRT);
    CHECK_THAT(out, contains("dying as configured"));
}

TEST_CASE("saving a frame ends at most two processes: then it is given up unsaved, the run continues") {
    run_fixture run;
    run.start(run.pipeline("tries", overrun_pipeline("tries", "fps = 20\n")), {"--frames", "12"});
    REQUIRE(run.wait_running());
    // what two processes leave that died while they saved the frame
    const std::string folder = run.path("runtime") + "/carousel/tries/dead-letters";
    for (int k = 1; k <= 2; ++k) fs::create_directories(fmt::format("{}/overrun-7.part{}", folder, k));
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("is given up and not saved: 2 processes died"));
    CHECK(run.report()["frames"] == 12);
    CHECK(run.report()["lost"] == 0);
    std::string out;
    CHECK(run.command({"replay"}, out) == exit_code::ok);
    CHECK_THAT(out, contains("there are no dead letters: no frame that was given up has been saved"));
}

TEST_CASE("16 given-up frames of a stage are saved, and the next is reported as not saved") {
    run_fixture run;
    run.start(
        run.pipeline("many", number_pipeline("many", "", "die_at = 5\ndie_every = 5\nmax_attempts = 1\n")),
        {"--frames", "88"});
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    CHECK(run.report()["frames"] == 88);
    CHECK(run.report()["lost"] == 0);
    CHECK(run.report()["dead_letters"].size() == 17);
    CHECK_THAT(
        run.log(),
        contains("frame 85 is given up and not saved: 16 dead letters of this stage are already saved"));
    const fs::path folder = run.path("runtime") + "/carousel/many/dead-letters";
    for (int frame = 5; frame <= 85; frame += 5) {
        CAPTURE(frame);
        CHECK(fs::exists(folder / fmt::format("middle-{}/letter.json", frame)) == (frame < 85));
    }
    std::string out;
    CHECK(run.command({"replay", "--dead-letter", "80"}, out) == -SIGABRT);
    CHECK(run.command({"replay", "--dead-letter", "85"}, out) == exit_code::usage);
    CHECK_THAT(out, contains("no saved frame 85"));
}
