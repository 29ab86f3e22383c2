// What the stages' counters report about a pipeline whose bottleneck is known.
#include <csignal>

#include "shm/segment.hpp"
#include "telemetry/snapshot.hpp"
#include "telemetry/snapshot_series.hpp"
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

/// The names of the facts that don't hold. Shares of time are measured again if other programs may have
/// spoilt them.
std::string amiss(std::initializer_list<std::pair<const char*, bool>> facts) {
    std::string found;
    for (const auto& [name, holds] : facts)
        if (!holds) found += std::string(name) + "; ";
    return found;
}

constexpr int measurements = 3;

/// The share of time for which a stage is reported as busy while it works on one frame.
f64 share_of_long_work() {
    run_fixture run;
    run.start(run.pipeline(
        "long", number_pipeline("long", "frames = 1\nframe_timeout_ms = 20000\n", "work_ms = 4000\n")));
    REQUIRE(run.wait_running());
    REQUIRE(run.wait_until([&] { return run.stages().size() == 3 && !run.run_id().empty(); }));
    const shm::segment observed = shm::segment::observe(run.run_id());
    const auto read_figures = [&] { return telemetry::read_snapshot(observed.block()); };
    const auto in_work = [](const telemetry::snapshot& s) {
        return s.seats[1].jobs_in_flight == 1 && s.stages[1].frames == 0;
    };
    REQUIRE(run.wait_until([&] { return in_work(read_figures()); }));
    const telemetry::snapshot before = read_figures();
    sleep_s(0.7);
    const telemetry::snapshot after = read_figures();
    REQUIRE(in_work(after));  // the stage has not become idle meanwhile
    CHECK(run.wait() == 0);
    const f64 passed = static_cast<f64>(after.taken_ns - before.taken_ns);
    return static_cast<f64>(after.stages[1].time.busy_ns - before.stages[1].time.busy_ns) / passed;
}

}  // namespace

TEST_CASE("the bottleneck waits for its own frames, upstream stages for slots, downstream for input") {
    std::string wrong, shown;
    for (int k = 0; k < measurements; ++k) {
        run_fixture run;
        run.start(run.pipeline("limits", number_pipeline("limits", "frames = 200\n", "work_ms = 10\n")));
        REQUIRE(run.wait() == 0);
        const json r = run.report();
        shown = r["stages"].dump(1);
        INFO(shown);
        check_undamaged(r);
        const json source = stage_of(r, "numbers"), middle = stage_of(r, "middle"),
                   sink = stage_of(r, "sink");
        CHECK(sink["wait_output"] == 0);
        for (const json& s : {source, middle, sink})
            CHECK(s["wait_input"].get<f64>() + s["wait_output"].get<f64>() + s["wait_own"].get<f64>() <
                  1.000001);
        wrong = amiss({
            {"the middle is busy", middle["busy"] > 0.9},
            {"the middle waits for its own frames", middle["wait_own"] > 0.8},
            {"the output ring of the middle is all but empty", middle["wait_output"] < 0.05},
            {"the middle has input", middle["wait_input"] < 0.1},
            {"the source waits for room", source["wait_output"] > 0.8},
            {"the source does not wait for its own frames", source["wait_own"] < 0.1},
            {"the sink waits for input", sink["wait_input"] > 0.8},
            {"the report names the middle", r["bottleneck"]["stage"] == "middle"},
            {"the log names the middle",
             run.log().find("limits: bottleneck: middle (busy ") != std::string::npos},
        });
        if (wrong.empty()) break;
    }
    INFO(shown);
    CHECK(wrong == "");
}

TEST_CASE("a stage that works at one frame for long is seen to be busy while it does") {
    f64 share = 0;
    for (int k = 0; k < measurements && !(share > 0.7 && share < 1.2); ++k) share = share_of_long_work();
    CHECK(share > 0.7);
    CHECK(share < 1.2);
}

TEST_CASE("a source with a rate waits for its clock, which is its input") {
    std::string wrong, shown;
    for (int k = 0; k < measurements; ++k) {
        run_fixture run;
        run.start(run.pipeline("paced", number_pipeline("paced", "frames = 60\nfps = 40\n")));
        REQUIRE(run.wait() == 0);
        const json source = stage_of(run.report(), "numbers");
        shown = source.dump(1);
        wrong = amiss({
            {"it waits for input", source["wait_input"] > 0.8},
            {"it has room", source["wait_output"] < 0.05},
            {"it is not busy", source["busy"] < 0.2},
        });
        if (wrong.empty()) break;
    }
    INFO(shown);
    CHECK(wrong == "");
}

TEST_CASE("a rate is that of each source, also if a run has two") {
    f64 seconds = 0;  // 120 frames at 60 frames/s
    for (int k = 0; k < measurements && !(seconds > 1.5 && seconds < 3); ++k) {
        run_fixture run;
        const std::string joined = fmt::format(
            "[[stage]]\nname = \"other\"\nrun = \"{0}/carousel-test-number\"\n[[stage]]\nname = "
            "\"join\"\nrun = "
            "\"{0}/carousel-test-number\"\ninputs = [\"middle\", \"other\"]\nsink = true\n",
            programs());
        run.start(run.pipeline("two", number_pipeline("two", "frames = 120\nfps = 60\n") + joined));
        REQUIRE(run.wait() == 0);
        seconds = run.report()["seconds"];
    }
    CHECK(seconds > 1.5);
    CHECK(seconds < 3);
}

TEST_CASE("ps, top and the control block's readers name the same stage during the run") {
    run_fixture run;
    run.start(run.pipeline("named", number_pipeline("named", "", "work_ms = 10\n")));
    REQUIRE(run.wait_running());
    const auto reported = [&] { return run.ask({{"type", "ps"}})["pipeline"]["bottleneck"]; };
    // The figures of one second may be spoilt by other programs, those of the following ones are not.
    CHECK(run.wait_until(
        [&] {
            json b = reported();
            return b.is_object() && b["kind"] == "stage" && b["stage"] == "middle" && b["busy"] > 0.9;
        },
        10));
    CHECK(run.wait_until(
        [&] {
            json m = run.stage("middle");
            return m["busy"] > 0.9 && m["wait_output"].is_number() && m["wait_output"] < 0.05;
        },
        10));
    std::string out;
    const auto names_middle = [&](const std::vector<std::string>& command) {
        return run.command(command, out) == 0 && out.find("bottleneck: middle (busy ") != std::string::npos;
    };
    CHECK(run.wait_until([&] { return names_middle({"ps", "-p", "named"}); }, 10));
    CHECK(run.wait_until([&] { return names_middle({"top", "--once", "-p", "named"}); }, 10));
    const shm::segment observed = shm::segment::observe(run.run_id());
    std::string seen;
    for (int k = 0; k < 5 && seen != "middle"; ++k) {
        telemetry::rate_tracker rates;
        (void)rates.feed(telemetry::read_snapshot(observed.block()));
        sleep_s(1);
        const telemetry::snapshot now = telemetry::read_snapshot(observed.block());
        seen = now.stage_name(telemetry::find_bottleneck(now, rates.feed(now)).stage);
    }
    CHECK(seen == "middle");
    CHECK(run.command({"stop", "sink", "-p", "named"}, out) == 0);
    CHECK(run.wait_until([&] { return reported()["text"] == "sink is stopped, and the others wait for it"; },
                         10));
    CHECK(run.command({"cont", "sink", "-p", "named"}, out) == 0);
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}

TEST_CASE("a stage that has waited for a second names what it waits for") {
    run_fixture run;
    run.start(run.pipeline("awaits", number_pipeline("awaits", "fps = 100\n")));
    REQUIRE(run.wait_running());
    const auto waits_for = [&](const char* stage, const json& what) {
        return run.wait_until([&] { return run.stage(stage).value("waits_for", json()) == what; }, 10);
    };
    std::string out;
    REQUIRE(run.command({"stop", "middle", "-p", "awaits"}, out) == 0);
    CHECK(waits_for("sink", "a frame of middle"));
    CHECK(waits_for("numbers", "a free slot of numbers"));
    REQUIRE(run.command({"ps", "-p", "awaits"}, out) == 0);
    CHECK_THAT(out, contains("waiting: a frame of middle"));
    REQUIRE(run.command({"stop", "sink", "-p", "awaits"}, out) == 0);
    CHECK(waits_for("sink", json()));  // a frame may be there by now
    REQUIRE(run.command({"cont", "sink", "-p", "awaits"}, out) == 0);
    CHECK(waits_for("sink", "a frame of middle"));
    // The entries of killed processes are reused by processes of other stages.
    for (const char* stage : {"sink", "middle"}) {
        const json killed = run.stage(stage).value("pid", json());
        CHECK(run.command({"kill", stage, "-p", "awaits"}, out) == 0);
        CHECK(run.wait_until(
            [&] {
                const json pid = run.stage(stage).value("pid", json());
                return pid.is_number() && pid != killed;
            },
            10));
    }
    REQUIRE(run.command({"cont", "middle", "-p", "awaits"}, out) == 0);
    CHECK(waits_for("sink", json()));
    CHECK(waits_for("numbers", json()));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    check_undamaged(run.report());
    CHECK(run.report()["words_repaired"] == 0);
}

TEST_CASE("while a required stage is down the pipeline waits, and it runs again after its return") {
    run_fixture run;
    run.start(run.pipeline("lacks", number_pipeline("lacks", "fps = 100\n")));
    REQUIRE(run.wait_running());
    const auto reported = [&] { return run.ask({{"type", "ps"}})["pipeline"]; };
    CHECK(reported()["state"] == "running");
    CHECK(reported()["waits_for"] == json::array());
    std::string out;
    REQUIRE(run.command({"down", "middle", "-p", "lacks"}, out) == 0);
    CHECK(run.wait_until([&] { return reported()["state_text"] == "waiting: middle is down"; }, 5));
    CHECK(reported()["state"] == "waiting");
    CHECK(reported()["waits_for"] == json({"middle"}));
    CHECK(reported()["bottleneck"]["text"] == "middle is down, and the others wait for it");
    REQUIRE(run.command({"ps", "-p", "lacks"}, out) == 0);
    CHECK_THAT(out, contains("lacks: waiting: middle is down, pid "));
    REQUIRE(run.command({"top", "--once", "-p", "lacks"}, out) == 0);
    CHECK_THAT(out, contains("lacks: waiting: middle is down, device "));
    REQUIRE(run.command({"up", "middle", "-p", "lacks"}, out) == 0);
    CHECK(run.wait_until([&] { return reported()["state"] == "running"; }, 5));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    check_undamaged(run.report());
}

TEST_CASE("an optional stage that is down blocks no stage") {
    run_fixture run;
    const std::string more =
        "[[stage]]\nname = \"more\"\nrun = \"" + programs() +
        "/carousel-test-number\"\ninputs = [\"numbers\"]\nsink = true\noptional = true\ngroup = \"latest\"\n";
    run.start(run.pipeline("spares", number_pipeline("spares", "fps = 100\n") + more));
    REQUIRE(run.wait_running());
    std::string out;
    REQUIRE(run.command({"down", "more", "-p", "spares"}, out) == 0);
    CHECK(run.wait_until([&] { return run.stage("more")["state"] == "down"; }, 5));
    CHECK(run.ask({{"type", "ps"}})["pipeline"]["state"] == "running");
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}
