// The report of a run about its frames: every sink is counted by the runner, abandoned frames have an exit
// code of their own, and what was not counted is not certified.
#include <csignal>

#include <fmt/format.h>

#include "core/errors.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

namespace {

/// One middle stage after another; each kills itself over one frame until that frame is abandoned.
std::string two_poisons(const std::string& name, const std::string& keys) {
    std::string text = number_pipeline(name, keys, "die_at = 30\nmax_attempts = 2\n");
    const std::string second = fmt::format(R"([[stage]]
name = "other"
run = "{}/carousel-test-number"
inputs = ["middle"]
die_at = 40
die_how = "segv"
max_attempts = 2
)",
                                           programs());
    text.replace(text.find("inputs = [\"middle\"]"), 19, "inputs = [\"other\"]");
    return text + second;
}

}  // namespace

TEST_CASE("a sink without ledger support is counted correctly, also under kills") {
    const std::string sink = GENERATE(as<std::string>{}, "plain = true\n", "hashes = false\n");
    CAPTURE(sink);
    run_fixture run;
    run.start(run.pipeline("plain", number_pipeline("plain", "fps = 300\n", "", "", sink)),
              {"--frames", "300"});
    REQUIRE(run.wait_running());
    for (int k = 0; k < 10 && run.running(); ++k) {
        run.hit("sink", SIGKILL);
        sleep_s(0.06);
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    CHECK(r["sinks"][0]["records"] == 300);
    CHECK(r["image_hash"].is_null());
    CHECK_THAT(run.log(), contains("lost 0, repeated 0, torn 0"));
}

TEST_CASE("control: frames that a sink without hashes did not get are lost") {
    run_fixture run("carousel-bug-lose-lease");
    run.start(run.pipeline("drops", number_pipeline("drops", "", "", "", "plain = true\nwork_ms = 5\n")),
              {"--frames", "300"});
    REQUIRE(run.wait_running());
    for (int k = 0; k < 10 && run.running(); ++k) {
        run.hit("sink", SIGKILL);
        sleep_s(0.06);
    }
    CHECK(run.wait() == 1);
    CHECK(run.report()["lost"].get<u64>() > 0);
}

TEST_CASE("a failed optional sink is not counted, and the closing lines say so") {
    run_fixture run;
    const std::string extra = fmt::format(
        "[[stage]]\nname = \"extra\"\nrun = \"{}/carousel-test-number\"\ninputs = [\"middle\"]\nsink = "
        "true\n",
        programs());
    run.start(run.pipeline("left", number_pipeline("left") + extra + "optional = true\nlate_start = true\n"),
              {"--frames", "50"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("sinks"));
    CHECK(r["sinks"][0]["lost"] == 0);
    CHECK(r["sinks"][1]["lost"].is_null());
    CHECK_THAT(run.log(), contains("lost 0, repeated 0, torn 0; extra not counted: it has failed"));
}

TEST_CASE("a sink that reads only the newest frames is listed as not counted") {
    run_fixture run;
    const std::string peek = fmt::format(
        "[[stage]]\nname = \"peek\"\nrun = \"{}/carousel-test-number\"\ninputs = [\"middle\"]\nsink = "
        "true\ngroup = \"latest\"\n",
        programs());
    run.start(run.pipeline("beside", number_pipeline("beside") + peek), {"--frames", "50"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(),
               contains("lost 0, repeated 0, torn 0; peek not counted: it reads the newest frames only"));
    const json r = run.report();
    REQUIRE(r.contains("sinks"));
    CHECK(r["sinks"][1]["lost"].is_null());
    CHECK(r["image_hash"] == r["sinks"][0]["image_hash"]);
}

TEST_CASE("given-up frames are named at the end and have their own exit code unless permitted") {
    const auto [keys, options, code] = GENERATE(table<std::string, std::vector<std::string>, int>({
        {"", {}, exit_code::frames_abandoned},
        {"allow_dead_letters = true\n", {}, 0},
        {"allow_dead_letters = 1\n", {}, exit_code::frames_abandoned},
        {"", {"--allow-dead-letters", "2"}, 0},
    }));
    CAPTURE(keys, options);
    run_fixture run;
    std::vector<std::string> words{"--frames", "60"};
    words.insert(words.end(), options.begin(), options.end());
    run.start(run.pipeline("poisons", two_poisons("poisons", keys)), words);
    CHECK(run.wait() == code);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("lost 0, repeated 0, torn 0; 2 given up (frame 30: middle, signal 6 "
                                   "(SIGABRT); frame 40: other, signal 11 (SIGSEGV))"));
    CHECK(run.report()["dead_letter_count"] == 2);
    CHECK(run.report()["exit_code"] == code);
}

TEST_CASE("an interrupted and drained run reports the frames that it gave up") {
    run_fixture run;
    run.start(
        run.pipeline("ended", number_pipeline("ended", "fps = 100\n", "die_at = 10\nmax_attempts = 2\n")));
    REQUIRE(run.wait_until([&] { return run.log().find("is given up") != std::string::npos; }));
    run.signal(SIGINT);
    CHECK(run.wait() == exit_code::frames_abandoned);
    CHECK_THAT(run.log(), contains("1 given up (frame 10: middle"));
}
