// Wild writes by real processes into the memory of others: they end their writer, which is reported, and no
// other process.
#include <fmt/format.h>

#include <csignal>

#include "core/errors.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/crash/scribbles.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

}  // namespace

TEST_CASE("20 wild writes to inputs end only the writers, which are named, and damage no frame") {
    check_scribbles("scribbles", 20, 1000, 300);
}

TEST_CASE("a frame that makes its stage write to its input is given up, with the write's address") {
    run_fixture run;
    run.start(run.pipeline("wild_writes",
                           number_pipeline("wild_writes", "",
                                           "die_at = 30\ndie_how = \"scribble\"\nmax_attempts = 3\n")),
              {"--frames", "100"});
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    const json r = run.report();
    CHECK(r["frames"] == 100);
    check_undamaged(r);
    REQUIRE(r["dead_letters"].size() == 1);
    CHECK(r["dead_letters"][0]["ring_sequence"] == 30);
    CHECK(r["dead_letters"][0]["stage"] == "middle");
    int reported = 0;
    for (const json& death : r["recoveries"]) {
        if (!death.contains("how")) continue;  // it was done, and has left
        ++reported;
        CHECK(death["seat"] == "middle");
        CHECK(death.value("wild_write", "") ==
              "a write into its input ring numbers, frame 30, plane value, offset 0");
    }
    CHECK(reported >=
          3);  // a death with several frames in flight does not count as an attempt of one of them
    CHECK_THAT(run.log(), contains("a write into its input ring numbers, frame 30, plane value, offset 0"));
}

TEST_CASE("a device fault names the frames in flight and reports that it has no address") {
    run_fixture run;
    run.start(run.pipeline("faults", number_pipeline("faults", "",
                                                     "die_at = 30\ndie_how = \"gpu\"\nmax_attempts = 2\n"
                                                     "work_ms = 20\nin_flight = 3\n")),
              {"--frames", "60"});
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    u32 together = 0, alone = 0;
    for (const json& death : r["recoveries"]) {
        if (!death.contains("how")) continue;
        CHECK(death["seat"] == "middle");
        const std::string where = death.value("wild_write", "");
        CAPTURE(where);
        alone +=
            where == "an illegal address, with only frame 30 in flight (a GPU reports no address)" ? 1 : 0;
        together += where.find(" and the newest 30 (a GPU reports no address)") != std::string::npos ? 1 : 0;
    }
    CHECK(together >= 1);
    CHECK(alone >= 2);
    CHECK_THAT(run.log(), contains("the device reports neither the address nor the kernel, so any of"));
}

TEST_CASE("a wild write to another stage's frame headers ends only the writer, which is named") {
    run_fixture run;
    run.start(run.pipeline("headers", number_pipeline("headers", "",
                                                      "die_at = 30\ndie_how = \"scribble_header\"\n"
                                                      "die_incarnations = 2\n")),
              {"--frames", "100"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    CHECK(r["frames"] == 100);
    check_undamaged(r);
    int reported = 0;
    for (const json& death : r["recoveries"]) {
        if (!death.contains("how")) continue;  // it was done, and has left
        ++reported;
        CHECK(death["seat"] == "middle");
        CHECK_THAT(death.value("wild_write", ""),
                   contains("a write into the headers of the ring numbers, frame "));
    }
    CHECK(reported >= 1);
}

TEST_CASE("a stage with writable inputs is reported as unguarded and accepts no scribble") {
    run_fixture run;
    const std::string file =
        run.pipeline("open", number_pipeline("open", "fps = 200\n", "writable_inputs = true\n"));
    std::string out;
    REQUIRE(run.command({"run", file, "--dry-run"}, out) == 0);
    CHECK_THAT(out, contains("inputs: unguarded: middle could write to ring numbers (it requests"));
    run.start(file, {});
    REQUIRE(run.wait_running());
    CHECK(run.stage("middle")["inputs_guarded"] == false);
    CHECK(run.stage("sink")["inputs_guarded"] == true);
    CHECK(run.stage("numbers")["inputs_guarded"].is_null());
    CHECK(run.command({"inject", "middle", "--fault", "scribble-input", "-p", "open"}, out) ==
          exit_code::usage);
    CHECK_THAT(out, contains("middle: its inputs are unguarded"));
    CHECK(run.command({"inject", "numbers", "--fault", "scribble-input", "-p", "open"}, out) ==
          exit_code::usage);
    CHECK_THAT(out, contains("numbers has no input to write to"));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    CHECK_THAT(run.log(), contains("its inputs are unguarded: it requests writable inputs"));
}

TEST_CASE("control: with writable inputs, wild writes are not detected and change delivered frames") {
    const auto text = [](const char* program) {
        std::string t = number_pipeline("unguarded", "fps = 200\n");
        const std::string middle = "name = \"middle\"\nrun = \"" + programs() + "/carousel-test-number";
        const std::size_t at = t.find(middle);
        REQUIRE(at != std::string::npos);
        return t.replace(at + middle.size() - std::string("number").size(), 6, program);
    };
    run_fixture calm;
    calm.start(calm.pipeline("calm", text("number")), {"--frames", "400"});
    REQUIRE(calm.wait() == 0);
    run_fixture run;
    run.start(run.pipeline("unguarded", text("number-unguarded")), {"--frames", "400"});
    REQUIRE(run.wait_running());
    for (int k = 0; k < 5; ++k) {
        const json answer = run.ask({{"type", "inject"}, {"stage", "middle"}, {"fault", "scribble-input"}});
        CHECK(answer.value("ok", false));
        sleep_s(0.05);
    }
    CHECK(run.wait() == 0);
    CHECK(run.report()["restarts"] == 0);
    CHECK(run.report()["image_hash"] != calm.report()["image_hash"]);
}
