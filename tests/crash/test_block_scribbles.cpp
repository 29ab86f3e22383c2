// Writes into the control block by real processes, bypassing the ring's functions: the page's rights or a key
// end the writer, which is reported with the place, and no other process.
#include <fmt/format.h>

#include <csignal>

#include "core/errors.hpp"
#include "shm/block_guard.hpp"
#include "tests/crash/block_scribbles.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

}  // namespace

TEST_CASE("keys: 12 wild writes to the control block end only the writers, and the report names them") {
    if (!shm::has_protection_keys()) CAROUSEL_SKIP(shm::why_no_keys());
    check_block_scribbles("keys", 12, 1000, 300, "");
}

TEST_CASE("6 wild writes to the control block end only their writers where keys are emulated") {
    check_block_scribbles("emulated", 6, 700, 200, "emulated");
}

TEST_CASE("6 wild writes to other stages' pages end only their writers where there are no keys") {
    check_block_scribbles("pages", 6, 600, 300, "pages");
}

TEST_CASE("a stage reports its protection of the control block, and the plan the available one") {
    run_fixture run;
    const std::string file = run.pipeline("told", number_pipeline("told", "fps = 200\n"));
    std::string out;
    REQUIRE(run.command({"run", file, "--dry-run"}, out) == 0);
    CHECK_THAT(out, contains("control block: guarded"));
    run.start(file, {}, {"CAROUSEL_TEST_BLOCK_GUARD=pages"});
    REQUIRE(run.wait_running());
    CHECK(run.stage("middle")["block_guard"] == "pages");
    run.hit("middle", SIGKILL);
    CHECK(run.wait_running());
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    check_undamaged(run.report());
}

TEST_CASE("a stage that leaves the control block open is reported and accepts no wild write") {
    run_fixture run;
    run.start(run.pipeline("open", number_pipeline("open", "fps = 200\n")), {},
              {"CAROUSEL_TEST_BLOCK_GUARD=off"});
    REQUIRE(run.wait_running());
    std::string out;
    CHECK(run.stage("middle")["block_guard"] == "none");
    CHECK(run.command({"inject", "middle", "--fault", "scribble-control", "-p", "open"}, out) ==
          exit_code::usage);
    CHECK_THAT(out, contains("middle: it can write to the whole control block"));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}

TEST_CASE("control: in an unprotected control block wild writes cause damage and are not reported") {
    run_fixture run;
    run.start(run.pipeline("open", picture_pipeline("open", "fps = 200\n")), {"--frames", "600"},
              {"CAROUSEL_TEST_BLOCK_GUARD=off", "CAROUSEL_TEST_SCRIBBLES_ANYWHERE=1"});
    REQUIRE(run.wait_running());
    const std::set<i32> guilty = scribble_block(run, 60, test_seed(), false);
    (void)run.wait(60);  // with any result: words of the run are damaged now
    const std::string log = run.log();
    INFO(log);
    CHECK_THAT(log, contains("a write into the control block, part "));  // logged by the writer itself
    CHECK(log.find("a write into the control block: ") == std::string::npos);
    // The supervisor detects damaged words, or a process dies that was not requested to write.
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    u64 harm = 0;
    for (const char* key : {"damaged", "words_repaired", "stalls", "rebuilds", "lost", "repeated", "torn"})
        harm += r[key].get<u64>();
    for (const json& death : r["recoveries"])
        harm += death.contains("how") && !guilty.contains(death["pid"].get<i32>()) ? 1 : 0;
    CHECK(harm > 0);
}
