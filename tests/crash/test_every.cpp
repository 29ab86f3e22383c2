// A sink that takes each N-th frame: through kills of every process it gets exactly those, once and in order.
#include <fmt/format.h>

#include <csignal>

#include "tests/crash/number_run.hpp"

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

TEST_CASE("a sink of each third frame, killed with its producers, gets exactly these frames") {
    run_fixture run;
    run.start(run.pipeline("thirds", number_pipeline("thirds", "fps = 400\n", "", "", "every = 3\n") +
                                         number_stage("all", "middle", "sink = true\n")),
              {"--frames", "1000"});
    REQUIRE(run.wait_running());
    std::mt19937_64 random(test_seed());
    constexpr const char* victims[] = {"sink", "sink", "middle", "numbers", "all"};
    i32 last = 0;
    for (u32 kills = 0; kills < 15 && run.running();) {
        const i32 pid = run.pid_of(victims[random() % 5]);
        if (pid > 0 && pid != last && ::kill(pid, SIGKILL) == 0) ++kills, last = pid;
        sleep_s(static_cast<f64>(random() % 1000) / 20'000.0);
    }
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["frames"] == 1000);
    CHECK(r["restarts"].get<u32>() >= 8);
    for (const json& sink : r["sinks"]) {
        const bool all = sink["stage"] == "all";
        CHECK(sink["records"] == (all ? 1000 : 334));
        CHECK(sink.value("skipped", 0) == (all ? 0 : 666));
    }
    CHECK(run.leftovers() == "");
}

TEST_CASE("a run whose only sink takes each tenth frame ends, and restarts at a frame that it takes") {
    run_fixture run;
    run.start(run.pipeline("tenths", number_pipeline("tenths", "fps = 400\n", "", "", "every = 10\n")),
              {"--frames", "405"});
    REQUIRE(run.wait_running());
    run.hit("sink", SIGKILL);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(run.report()["frames"] == 405);
    CHECK(run.report()["rebuilds"] == 0);
    CHECK(run.leftovers() == "");
}

// The maker of the last frames sleeps until they are complete and then leaves; its reader takes none of them.
TEST_CASE("the last frames of a run are passed if their only reader takes none of them") {
    run_fixture run;
    run.start(run.pipeline("last", number_pipeline("last", "", "work_ms = 3\n", "", "every = 10\n")),
              {"--frames", "105"});
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(run.report()["frames"] == 105);
    CHECK(run.report()["rebuilds"] == 0);
    CHECK(run.leftovers() == "");
}

TEST_CASE("a run whose sink takes few frames is rebuilt at the first frame that was not begun") {
    run_fixture run;
    run.start(run.pipeline("few", number_pipeline("few", "fps = 100\n", "", "", "every = 5000\n")));
    REQUIRE(run.wait_running());
    const auto is_at = [&](u64 frame) {
        const json p = run.ask({{"type", "ps"}});
        return p.contains("pipeline") && p["pipeline"]["frames"].get<u64>() >= frame;
    };
    REQUIRE(run.wait_until([&] { return is_at(10); }));
    CHECK(run.ask({{"type", "rebuild"}})["ok"] == true);
    CHECK(run.wait_until([&] { return run.log().find("the run restarts at frame ") != std::string::npos; }));
    REQUIRE(run.wait_running());
    REQUIRE(run.wait_until([&] { return is_at(10); }));
    run.signal(SIGINT);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    const json r = run.report();
    check_undamaged(r);
    CHECK(r["rebuilds"] == 1);
    CHECK(r["frames"] > 10);
    CHECK(r["frames"] < 5000);
    CHECK(r["sinks"][0]["records"] == 1);
    CHECK(run.leftovers() == "");
}
