// A source that ends its stream, with real processes: what is delivered, what is reported, and which
// processes may die on the way.
#include <fmt/format.h>

#include <csignal>

#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::string ending(const std::string& name, u64 ends_at, const std::string& pipeline_keys = "",
                   const std::string& source = "") {
    return number_pipeline(name, pipeline_keys, "", fmt::format("ends_at = {}\n{}", ends_at, source));
}

void check_ended(run_fixture& run, u64 frames) {
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    CHECK(r["frames"] == frames);
    CHECK(r["ended_by"] == "numbers");
    CHECK(r["ending"] == "complete");
    CHECK(r["rebuilds"] == 0);
    CHECK(r["dead_letters"].empty());
    check_undamaged(r);
    CHECK_THAT(run.log(),
               contains(fmt::format("the stream ended before frame {}, as its source numbers", frames)));
    CHECK(run.leftovers() == "");
}

}  // namespace

TEST_CASE("a run ends when its source ends the stream and names the source") {
    const u64 frames = GENERATE(0, 1, 300);
    CAPTURE(frames);
    run_fixture run;
    run.start(run.pipeline("ends", ending("ends", frames)), {});
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_ended(run, frames);
    if (frames == 300) CHECK(run.report()["image_hash"] == undisturbed_hash(frames));
}

TEST_CASE("of --frames and the end of the stream the lower number counts") {
    const auto [asked, ended] = GENERATE(table<u64, bool>({{1000, true}, {100, false}}));
    CAPTURE(asked);
    run_fixture run;
    run.start(run.pipeline("asked", ending("asked", 300)), {"--frames", std::to_string(asked)});
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(run.report()["frames"] == (ended ? 300 : 100));
    CHECK(run.report()["ended_by"] == (ended ? json("numbers") : json()));
    check_undamaged(run.report());
}

TEST_CASE("a source that dies or waits after its claim or after END still ends the stream") {
    const auto [point, how] = GENERATE(table<crash_point, std::string>({{crash_point::end_claimed, "kill"},
                                                                        {crash_point::end_claimed, "stop"},
                                                                        {crash_point::end_claimed, "abort"},
                                                                        {crash_point::end_known, "kill"}}));
    CAPTURE(std::string(name_of(point)), how);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("numbers", point, how, 1);
    plan.write();
    run.start(run.pipeline("claims", ending("claims", 200, crash_keys, "work_ms = 1\n")), {},
              {plan.environment()});
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(plan.pending_lines() == "");
    check_ended(run, 200);
}

TEST_CASE("a supervisor that dies between recording the end and END leaves it to its successor") {
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("supervisor", crash_point::end_kept, "kill", 1);
    plan.write();
    const std::string file = run.pipeline("kept", ending("kept", 200, "supervisor_grace_s = 20\n"));
    run.start(file, {}, {plan.environment()});
    CHECK(run.wait() == -SIGKILL);
    CHECK(plan.pending_lines() == "");
    run.start(file);
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_ended(run, 200);
    CHECK(run.report()["taken_over"] == 1);
}

TEST_CASE("instances that come to the end in any order, and are killed on the way, agree on the frame") {
    run_fixture run;
    run.start(
        run.pipeline("instances", ending("instances", 600, "fps = 400\n", "instances = 2\nwork_ms = 2\n")),
        {});
    REQUIRE(run.wait_running());
    for (int k = 0; k < 12 && run.running(); ++k) {
        run.hit(k % 3 == 0 ? "sink" : fmt::format("numbers.{}", k % 2), SIGKILL);
        sleep_s(0.1);
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_ended(run, 600);
}

TEST_CASE("a stop at the end of the stream delivers all frames of the stream") {
    const f64 after_s = GENERATE(0.30, 0.45, 0.50, 0.55);
    CAPTURE(after_s);
    run_fixture run;
    run.start(run.pipeline("both", ending("both", 200, "fps = 400\n")), {});
    REQUIRE(run.wait_running());
    sleep_s(after_s);
    run.signal(SIGINT);
    CHECK(run.wait(20) == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    CHECK(r["frames"] <= 200);
    CHECK(r["ending"] == "complete");
    check_undamaged(r);
    CHECK(run.leftovers() == "");
}

TEST_CASE("frames of another source beyond the end are not damage and block no stage") {
    run_fixture run;
    const std::string text = ending("joined", 100, "", "work_ms = 2\n") + fmt::format(R"(
[[stage]]
name = "ahead"
run = "{0}/carousel-test-number"
[[stage]]
name = "join"
run = "{0}/carousel-test-number"
inputs = ["middle", "ahead"]
sink = true
)",
                                                                                      programs());
    run.start(run.pipeline("joined", text), {});
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_ended(run, 100);
    CHECK(run.report()["stages"].size() == 5);
}

TEST_CASE("a source that ends its stream without declaring it dies with that message") {
    run_fixture run;
    run.start(run.pipeline("unannounced",
                           ending("unannounced", 50, "", "ends_unannounced = true\nrestart = \"no\"\n")),
              {});
    CHECK(run.wait() != 0);
    CHECK_THAT(
        run.log(),
        contains("stage numbers calls end_stream() for frame 50, but its configure() does not declare it"));
    CHECK(run.leftovers() == "");
}
