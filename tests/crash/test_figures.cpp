// What the stages' counters say about a pipeline of which we know what limits it.
#include "shm/segment.hpp"
#include "telemetry/snapshot.hpp"
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

TEST_CASE("the stage that limits waits for its own frames, those before it for room, those behind it for input") {
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
}

TEST_CASE("a stage that works at one frame for long is seen to be busy while it does") {
    run_fixture run;
    run.start(run.pipeline("long", number_pipeline("long", "frames = 1\n", "work_ms = 1500\n")));
    REQUIRE(run.wait_running());
    REQUIRE(run.wait_until([&] { return run.stages().size() == 3 && !run.run_id().empty(); }));
    const shm::segment observed = shm::segment::observe(run.run_id());
    const auto look = [&] { return telemetry::read_snapshot(observed.block()); };
    const auto in_work = [](const telemetry::snapshot& s) { return s.seats[1].jobs_in_flight == 1 && s.stages[1].frames == 0; };
    REQUIRE(run.wait_until([&] { return in_work(look()); }));
    const telemetry::snapshot before = look();
    sleep_s(0.7);
    const telemetry::snapshot after = look();
    REQUIRE(in_work(after));  // it has not fallen idle meanwhile
    const f64 passed = static_cast<f64>(after.taken_ns - before.taken_ns);
    const f64 grown = static_cast<f64>(after.stages[1].busy_ns - before.stages[1].busy_ns);
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
