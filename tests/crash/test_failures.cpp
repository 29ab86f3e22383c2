// Stages that die of their own: attempts, tombstone frames, delays, and the end of a run that can't continue.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "core/errors.hpp"
#include "ledger/ledger.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

}  // namespace

TEST_CASE("a frame that kills its stage each time is given up and reaches the sink as a tombstone") {
    // exit code 76 returns frames to instances on another host: for a stage that represents no such instances
    // it counts as a failure
    const std::string how =
        GENERATE(as<std::string>{}, "abort", "segv", "throw", "exit3", "exit76", "bare_exit");
    CAPTURE(how);
    run_fixture run;
    const std::string middle = fmt::format("die_at = 30\ndie_how = \"{}\"\nmax_attempts = 3\n", how);
    run.start(run.pipeline("poison", number_pipeline("poison", "", middle)), {"--frames", "100"});
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    const json r = run.report();
    CHECK(r["exit_code"] == exit_code::frames_abandoned);
    REQUIRE(r.contains("dead_letters"));
    CHECK(r["frames"] == 100);
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    REQUIRE(r["dead_letters"].size() == 1);
    CHECK(r["dead_letters"][0]["ring_sequence"] == 30);
    CHECK(r["dead_letters"][0]["stage"] == "middle");
    CHECK(r["dead_letters"][0]["reason"] != "unknown");
    CHECK(r["restarts"].get<int>() >= 3);
    CHECK(r["restarts"].get<int>() <= 6);
    CHECK(run.leftovers() == "");
}

TEST_CASE("kills from outside are no attempts: the frame in hand is delivered whole") {
    run_fixture run;
    run.start(run.pipeline("innocent", number_pipeline("innocent", "",
                                                       "enqueue_ms = 20\nin_flight = 1\nmax_attempts = 2\n")),
              {"--frames", "60"});
    REQUIRE(run.wait_running());
    // a fault's signal sent by another process is not a fault
    const int signals[] = {SIGKILL, SIGABRT, SIGSEGV, SIGTERM, SIGBUS};
    for (int k = 0; k < 15; ++k) {
        run.hit("middle", signals[k % 5]);
        sleep_s(0.1);
    }
    CHECK(run.wait() == 0);
    const json r = run.report();
    CHECK(r["dead_letters"].empty());
    CHECK(r["lost"] == 0);
}

TEST_CASE("processes that commit nothing are delayed, and the fifth ends the run with the root cause") {
    run_fixture run;
    run.start(run.pipeline("fails", number_pipeline("fails", "", "late_start = true\n")),
              {"--frames", "100"});
    const f64 began = seconds_now();
    CHECK(run.wait() == 1);
    CHECK(seconds_now() - began > 1.4);  // 0.1 + 0.2 + 0.4 + 0.8 s
    CHECK_THAT(run.log(), contains("stage middle has failed"));
    CHECK_THAT(run.log(), contains("this stage can't be prepared"));
    CHECK_THAT(run.log(),
               contains("exit code 73"));  // its own exit code, not that of a fault during the exit
    CHECK(run.report()["exit_code"] == 1);
    CHECK(run.leftovers() == "");
}

TEST_CASE("a restart policy of no ends the run at the first death") {
    run_fixture no;
    no.start(no.pipeline("policy", number_pipeline("policy", "fps = 200\n", "restart = \"no\"\n")),
             {"--frames", "10000"});
    REQUIRE(no.wait_running());
    no.hit("middle", SIGKILL);
    CHECK(no.wait() == 1);
    CHECK_THAT(no.log(), contains("stage middle has failed: signal 9"));
    CHECK(no.leftovers() == "");
}

TEST_CASE("a failed optional stage is skipped and the run continues") {
    run_fixture run;
    const std::string text = number_pipeline("optional") + fmt::format(R"(
[[stage]]
name = "extra"
run = "{}/carousel-test-number"
inputs = ["middle"]
sink = true
optional = true
late_start = true
)",
                                                                       programs());
    run.start(run.pipeline("optional", text), {"--frames", "300"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("extra has failed"));
    const json r = run.report();
    REQUIRE(r.contains("sinks"));
    CHECK(r["frames"] == 300);
    CHECK(r["sinks"][0]["lost"] == 0);
}

namespace {

/// A second sink, which dies on frame 5 in its first incarnation and is skipped from then on.
std::string optional_sink() {
    return fmt::format(
        "[[stage]]\nname = \"extra\"\nrun = \"{}/carousel-test-number\"\n"
        "inputs = [\"numbers\", \"middle\"]\nsink = true\noptional = true\n"
        "restart = \"no\"\ndie_at = 5\ndie_incarnations = 1\n",
        programs());
}

/// "... gets every frame from N on"
u64 counted_from(const run_fixture& run) {
    const std::string log = run.log(), words = "it gets every frame from ";
    const auto at = log.rfind(words);
    REQUIRE(at != std::string::npos);
    return std::strtoull(log.c_str() + at + words.size(), nullptr, 10);
}

bool makes_progress(run_fixture& run, const std::string& stage, u64 frames) {
    const auto count = [&] { return run.stage(stage).value("frames", u64{0}); };
    const u64 then = count();
    return run.wait_until([&] { return count() >= then + frames; });
}

}  // namespace

TEST_CASE("an optional sink that is started again gets every frame from then on, and counts again") {
    run_fixture run;
    const std::string file = run.pipeline(
        "again", number_pipeline("again", "fps = 2000\nsupervisor_grace_s = 20\n") + optional_sink());
    run.start(file);
    REQUIRE(run.wait_until([&] { return run.stage("extra").value("state", "") == "failed"; }));
    CHECK(makes_progress(run, "sink", 100));
    const bool adopted = GENERATE(false, true);
    if (adopted) {
        run.signal(SIGKILL);
        REQUIRE(run.wait() == -SIGKILL);
        run.start(file);
        REQUIRE(run.wait_until([&] { return run.log().find("adopted again") != std::string::npos; }));
        CHECK(makes_progress(run, "sink", 100));
    }
    std::string out;
    REQUIRE(run.command({"up", "extra", "-p", "again"}, out) == 0);
    CHECK(makes_progress(run, "extra", 300));
    run.signal(SIGINT);
    const int code = run.wait();
    INFO(run.log());
    CHECK(code == 0);
    const json report = run.report();
    check_undamaged(report);
    const json extra = report["sinks"][1];
    CHECK(extra["counted"] == true);
    CHECK(extra["lost"] == 0);
    CHECK(extra["skipped"] > 100);
    const u64 from = counted_from(run), frames = report["frames"];
    CHECK(extra["records"].get<u64>() + extra["skipped"].get<u64>() == frames);
    // from the ledger itself, which is saved next to the report
    const auto ledger = telemetry::ledger_reader::open(run.path(extra["ledger"]));
    REQUIRE(ledger);
    const auto records = ledger->read(from, frames - from);
    CHECK(std::all_of(records.begin(), records.end(), telemetry::is_marked));
    CHECK_THAT(run.log(), contains("frames have skipped extra while it had failed"));
}

TEST_CASE("a supervisor that dies before resuming an optional sink's claim has a successor that does") {
    run_fixture run;
    const std::string file = run.pipeline(
        "half", number_pipeline("half", "fps = 2000\nsupervisor_grace_s = 20\n") + optional_sink());
    run.start(file);
    REQUIRE(run.wait_until([&] { return run.stage("extra").value("state", "") == "failed"; }));
    std::string out;
    REQUIRE(run.command({"up", "extra", "-p", "half"}, out) == 0);
    CHECK(makes_progress(run, "extra", 100));
    const u64 from = counted_from(run);
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    const std::string claims = run.path("runtime/carousel/half/ledger-extra.bin.unclaimed");
    u64 first = 0;
    REQUIRE(std::ifstream(claims) >> first);
    std::ofstream(claims) << first << " -\n";
    run.start(file);
    // Until the successor has replaced it, the log is the predecessor's.
    REQUIRE(run.wait_until([&] {
        const std::string log = run.log();
        return log.find("adopted half") != std::string::npos &&
               log.find("it gets every frame from ") != std::string::npos;
    }));
    CHECK(counted_from(run) > from);
    CHECK(makes_progress(run, "extra", 100));
    run.signal(SIGINT);
    const int code = run.wait();
    INFO(run.log());
    CHECK(code == 0);
    check_undamaged(run.report());
    CHECK(run.report()["sinks"][1]["counted"] == true);
}

TEST_CASE("a run whose only sink is optional ends when that sink has failed permanently") {
    run_fixture run;
    const std::string file = run.pipeline(
        "alone", number_pipeline("alone", "", "", "", "optional = true\nrestart = \"no\"\ndie_at = 5\n"));
    run.start(file, {"--frames", "300"});
    CHECK(run.wait() == 1);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("no other sink is left"));
    CHECK(run.leftovers() == "");
}

TEST_CASE("a stage with invalid settings is refused before any process starts") {
    run_fixture run;
    run.start(run.pipeline("wrong", number_pipeline("wrong", "", "enqueue_msec = 3\n")), {"--frames", "10"});
    CHECK(run.wait() == 2);
    CHECK_THAT(run.log(), contains("did you mean"));
    CHECK(run.leftovers() == "");
}

TEST_CASE("a stage that logs all the time never waits for its log, even without a reader") {
    run_fixture run;
    const std::string text = number_pipeline("talk", "", "print = true\n");
    SECTION("the reader is gone") {
        const std::string file = run.pipeline("talk", text);
        std::string out;
        // head closes the pipe after its first line; the run continues to its end.
        supervisor::spawn_request r;
        r.argv = {"/bin/sh", "-c",
                  programs() + "/carousel run " + file + " --frames 2000 --report " +
                      run.path("report.json") + " 2>&1 >/dev/null | head -n 1 >/dev/null"};
        r.environment = {"XDG_RUNTIME_DIR=" + run.path("runtime")};
        const supervisor::spawned p = supervisor::spawn(r);
        CHECK(run.wait_until([&] { return run.report().contains("frames"); }, 20));
        CHECK(run.wait_until([&] { return supervisor::has_ended(p.pidfd.get()); }, 20));
        (void)supervisor::reap(p.pidfd.get());
    }
    SECTION("the reader does not read") {
        supervisor::spawn_request r;
        r.argv = {"/bin/sh", "-c",
                  programs() + "/carousel run " + run.pipeline("talk", text) + " --frames 2000 --report " +
                      run.path("report.json") + " 2>&1 >/dev/null | sleep 6"};
        r.environment = {"XDG_RUNTIME_DIR=" + run.path("runtime")};
        const supervisor::spawned p = supervisor::spawn(r);
        CHECK(run.wait_until([&] { return run.report().contains("frames"); }, 5));
        CHECK(run.wait_until([&] { return supervisor::has_ended(p.pidfd.get()); }, 20));
        (void)supervisor::reap(p.pidfd.get());
    }
    CHECK(run.report()["frames"] == 2000);
    CHECK(run.report()["lost"] == 0);
}
