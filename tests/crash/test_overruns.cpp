// Writes past output slots by real processes: the gap ends the writer, which is reported, and no other
// process.
#include <csignal>

#include "core/errors.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/crash/overruns.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

}  // namespace

TEST_CASE("15 writes beyond output slots end only the writers, which are named, and damage no frame") {
    check_overruns("overruns", 15, 800, 300);
}

TEST_CASE("a ring without gaps is reported as unguarded and accepts no overrun, nor does a sink") {
    run_fixture run;
    const std::string file =
        run.pipeline("open", number_pipeline("open", "fps = 200\n") + "[link.middle]\nguard = \"off\"\n");
    std::string out;
    REQUIRE(run.command({"run", file, "--dry-run"}, out) == 0);
    CHECK_THAT(out, contains("outputs: unguarded, because there is neither a gap nor a canary after the "
                             "slots of ring middle (guard = \"off\")"));
    run.start(file, {});
    REQUIRE(run.wait_running());
    CHECK(run.stage("middle")["output_guarded"] == false);
    CHECK(run.stage("numbers")["output_guarded"] == true);
    CHECK(run.stage("sink")["output_guarded"].is_null());
    CHECK(run.command({"inject", "middle", "--fault", "overrun-output", "-p", "open"}, out) ==
          exit_code::usage);
    CHECK_THAT(out, contains("middle: its output is unguarded"));
    CHECK(run.command({"inject", "sink", "--fault", "overrun-output", "-p", "open"}, out) ==
          exit_code::usage);
    CHECK_THAT(out, contains("sink has no output to write beyond"));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    const json memory = run.report()["memory"];
    CHECK(memory[0]["guard"] == "gap");
    CHECK(memory[1]["guard"] == "none");
}

TEST_CASE("control: without gaps, writes beyond output slots are not detected and damage frames") {
    const auto text = picture_pipeline("unguarded") +
                      "[link.geometry]\nguard = \"off\"\n[link.vertex]\nguard = \"off\"\n"
                      "[link.fragment]\nguard = \"off\"\n";
    run_fixture calm;
    calm.start(calm.pipeline("calm", text), {"--frames", "900"});
    REQUIRE(calm.wait() == 0);
    // Where a write lands, and in which frame, depends on the machine: a run in which no frame was harmed is
    // repeated.
    bool harmed = false;
    for (u64 turn = 0; turn < 5 && !harmed; ++turn) {
        run_fixture run;
        // Upstream of a slow sink frames wait in every ring: a neighbouring slot holds one that is still to
        // be read.
        run.start(run.pipeline("unguarded", text), {"--frames", "900", "--set", "display.delay_ms=4"},
                  {"CAROUSEL_TEST_OVERRUNS_ANYWHERE=1"});
        REQUIRE(run.wait_running());
        (void)overrun(run, 40, test_seed() + turn, false);
        (void)run.wait(60);
        INFO(run.log());
        const json r = run.report();
        REQUIRE(r.contains("frames"));
        // Harm to frames: whether a writer has died of its write does not count.
        harmed = r["torn"] != 0 || r["image_hash"] != calm.report()["image_hash"];
        CHECK(run.log().find("an overrun of its slot in the ring ") == std::string::npos);
    }
    CHECK(harmed);
}
