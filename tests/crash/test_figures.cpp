// What the stages' counters say about a pipeline of which we know what limits it.
#include <csignal>

#include "shm/segment.hpp"
#include "telemetry/snapshot.hpp"
#include "telemetry/snapshot_rates.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

json stage_of(const json& report, const std::string& name) {
    for (const json& s : report["stages"])
        if (s["name"] == name) return s;
    return json::object();
}

}  // namespace

TEST_CASE(
    "the stage that limits waits for its own frames, those before it for room, those behind it for input") {
    run_fixture run;
    run.start(run.pipeline("limits", number_pipeline("limits", "frames = 200\n", "work_ms = 10\n")));
    REQUIRE(run.wait() == 0);
    const json r = run.report();
    INFO(r["stages"].dump(1));
    check_undamaged(r);
    const json source = stage_of(r, "numbers"), middle = stage_of(r, "middle"), sink = stage_of(r, "sink");
    CHECK(middle["busy"] > 0.9);
    CHECK(middle["wait_own"] > 0.8);
    CHECK(middle["wait_output"] < 0.05);  // the ring behind it is all but empty
    CHECK(middle["wait_input"] < 0.1);
    CHECK(source["wait_output"] > 0.8);
    CHECK(source["wait_own"] < 0.1);
    CHECK(sink["wait_input"] > 0.8);
    CHECK(sink["wait_output"] == 0);
    for (const json& s : {source, middle, sink})
        CHECK(s["wait_input"].get<f64>() + s["wait_output"].get<f64>() + s["wait_own"].get<f64>() < 1.000001);
    CHECK(r["bottleneck"]["stage"] == "middle");
    CHECK_THAT(run.log(), contains("limits: middle limits: busy "));
}

TEST_CASE("a stage that works at one frame for long is seen to be busy while it does") {
    run_fixture run;
    run.start(run.pipeline("long", number_pipeline("long", "frames = 1\n", "work_ms = 1500\n")));
    REQUIRE(run.wait_running());
    REQUIRE(run.wait_until([&] { return run.stages().size() == 3 && !run.run_id().empty(); }));
    const shm::segment observed = shm::segment::observe(run.run_id());
    const auto look = [&] { return telemetry::read_snapshot(observed.block()); };
    const auto in_work = [](const telemetry::snapshot& s) {
        return s.seats[1].jobs_in_flight == 1 && s.stages[1].frames == 0;
    };
    REQUIRE(run.wait_until([&] { return in_work(look()); }));
    const telemetry::snapshot before = look();
    sleep_s(0.7);
    const telemetry::snapshot after = look();
    REQUIRE(in_work(after));  // it has not fallen idle meanwhile
    const f64 passed = static_cast<f64>(after.taken_ns - before.taken_ns);
    const f64 grown = static_cast<f64>(after.stages[1].time.busy_ns - before.stages[1].time.busy_ns);
    CHECK(grown / passed > 0.7);
    CHECK(grown / passed < 1.2);
    CHECK(run.wait() == 0);
}

TEST_CASE("a source with a rate waits for its clock, which is its input") {
    run_fixture run;
    run.start(run.pipeline("paced", number_pipeline("paced", "frames = 60\nfps = 40\n")));
    REQUIRE(run.wait() == 0);
    const json source = stage_of(run.report(), "numbers");
    INFO(source.dump(1));
    CHECK(source["wait_input"] > 0.8);
    CHECK(source["wait_output"] < 0.05);
    CHECK(source["busy"] < 0.2);
}

TEST_CASE("ps, top and the control block's readers name the same stage while the run goes on") {
    run_fixture run;
    run.start(run.pipeline("named", number_pipeline("named", "", "work_ms = 10\n")));
    REQUIRE(run.wait_running());
    const auto said = [&] { return run.ask({{"command", "ps"}})["pipeline"]["bottleneck"]; };
    CHECK(run.wait_until([&] { return said().value("kind", "") == "stage"; }, 10));
    const json b = said();
    CHECK(b["stage"] == "middle");
    CHECK(b["busy"] > 0.9);
    CHECK(run.stage("middle")["busy"] > 0.9);
    CHECK(run.stage("middle")["wait_output"] < 0.05);
    std::string out;
    REQUIRE(run.command({"ps", "-p", "named"}, out) == 0);
    CHECK_THAT(out, contains("middle limits: busy "));
    REQUIRE(run.command({"top", "--once", "-p", "named"}, out) == 0);
    CHECK_THAT(out, contains("middle limits: busy "));
    const shm::segment observed = shm::segment::observe(run.run_id());
    telemetry::rate_tracker rates;
    (void)rates.feed(telemetry::read_snapshot(observed.block()));
    sleep_s(1);
    const telemetry::snapshot now = telemetry::read_snapshot(observed.block());
    const telemetry::bottleneck seen = telemetry::find_bottleneck(now, rates.feed(now));
    CHECK(now.stage_name(seen.stage) == "middle");
    CHECK(run.command({"stop", "sink", "-p", "named"}, out) == 0);
    CHECK(run.wait_until([&] { return said()["text"] == "sink is stopped: the others wait for it"; }, 5));
    CHECK(run.command({"cont", "sink", "-p", "named"}, out) == 0);
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}

TEST_CASE(
    "while a required stage is down the pipeline waits for it and says so, and it runs again behind its "
    "return") {
    run_fixture run;
    run.start(run.pipeline("lacks", number_pipeline("lacks", "fps = 100\n")));
    REQUIRE(run.wait_running());
    const auto said = [&] { return run.ask({{"command", "ps"}})["pipeline"]; };
    CHECK(said()["state"] == "running");
    CHECK(said()["waits_for"] == json::array());
    std::string out;
    REQUIRE(run.command({"down", "middle", "-p", "lacks"}, out) == 0);
    CHECK(run.wait_until([&] { return said()["state_text"] == "waiting: middle is down"; }, 5));
    CHECK(said()["state"] == "waiting");
    CHECK(said()["waits_for"] == json({"middle"}));
    CHECK(said()["bottleneck"]["text"] == "middle is down: the others wait for it");
    REQUIRE(run.command({"ps", "-p", "lacks"}, out) == 0);
    CHECK_THAT(out, contains("lacks: waiting: middle is down, pid "));
    REQUIRE(run.command({"top", "--once", "-p", "lacks"}, out) == 0);
    CHECK_THAT(out, contains("lacks: waiting: middle is down, device "));
    REQUIRE(run.command({"up", "middle", "-p", "lacks"}, out) == 0);
    CHECK(run.wait_until([&] { return said()["state"] == "running"; }, 5));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    check_undamaged(run.report());
}

TEST_CASE("an optional stage that is down is missed by nobody") {
    run_fixture run;
    const std::string more =
        "[[stage]]\nname = \"more\"\nrun = \"" + programs() +
        "/carousel-test-number\"\ninputs = [\"numbers\"]\nsink = true\noptional = true\ngroup = \"latest\"\n";
    run.start(run.pipeline("spares", number_pipeline("spares", "fps = 100\n") + more));
    REQUIRE(run.wait_running());
    std::string out;
    REQUIRE(run.command({"down", "more", "-p", "spares"}, out) == 0);
    CHECK(run.wait_until([&] { return run.stage("more")["state"] == "down"; }, 5));
    CHECK(run.ask({{"command", "ps"}})["pipeline"]["state"] == "running");
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}
