// The report, from ledgers and counters that the test writes itself.
#include "supervisor/engine/report.hpp"

#include <cstring>

#include "core/errors.hpp"
#include "ledger/ledger.hpp"
#include "ledger/ledger_fold.hpp"
#include "supervisor/stores/ledger_store.hpp"
#include "telemetry/depth.hpp"
#include "telemetry/histogram.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using nlohmann::json;

struct synthetic {
    scratch_folder folder;
    run_setup setup;
    std::unique_ptr<shm::control_block> control = std::make_unique<shm::control_block>();
    std::vector<std::unique_ptr<seat>> seats;
    death_account deaths;
    std::vector<recovery> recoveries;
    std::vector<telemetry::stage_shares> shares;

    synthetic() {
        setup.name = "made";
        setup.directory = folder.path.string();
        setup.width = 64;
        setup.height = 32;
        for (const char* name : {"source", "sink"}) {
            stage_setup st;
            st.spec.name = name;
            st.device_name = "cpu";
            setup.stages.push_back(st);
        }
        setup.stages[0].format = {{"type", "t"}};
        setup.stages[0].slot_bytes = 512;
        setup.stages[1].spec.input_indices = {0};
        setup.end = 10;
        ring::initialise(*control, plan_of(setup));
        for (u32 k = 0; k < 2; ++k) {
            seats.push_back(std::make_unique<seat>());
            seats.back()->stage = k;
            seats.back()->pids = {100 + static_cast<i32>(k)};
        }
    }
    void record(u64 first, u64 end, u64 tombstone_at = ~u64{0}) const {
        telemetry::ledger_writer w(telemetry::ledger_path(setup.directory, "sink"));
        for (u64 n = first; n < end; ++n) {
            w.record(n, n == tombstone_at ? 0 : n * 7 + 1, n == tombstone_at, 1);
            w.mark_committed(n, n == tombstone_at ? 0 : n * 7 + 1, n == tombstone_at, 1);
        }
    }
    json report(const std::string& ended_by = "") const {
        run_outcome o;
        o.ended_by = ended_by;
        o.end = 10;
        o.complete = true;
        o.seconds = 2;
        o.ending = "complete";
        const std::vector<sink_account> sinks = read_ledgers(setup, *control, o.end);
        return make_report({&setup, control.get(), &seats, &deaths, &recoveries, &sinks, o, {}, shares});
    }
};

}  // namespace

TEST_CASE("each seat's depth is the value that its newest process reported, with the reason") {
    synthetic s;
    s.record(0, 1);
    s.seats[0]->depth = telemetry::depth_view{14,     16,   telemetry::depth_reason::turns, 4,
                                              66'000, true, telemetry::reach_state::copy}
                            .pack();
    const json depth = s.report()["stages"][0]["depth"];
    CHECK(depth ==
          json::array(
              {{{"in_flight", 14},
                {"window", 16},
                {"work_ms", 0.066},
                {"reason", "4 contexts take turns on the GPU, with 0.066 ms per frame over all contexts"},
                {"graphs", true},
                {"reach", "copy"}}}));
}

TEST_CASE("a run that ended before its last frame reports the number of frames and the cause") {
    run_outcome o;
    o.end = 26;
    CHECK(o.early_text() == "");  // no number of frames was given
    o.planned_end = 26;
    CHECK(o.early_text() == "");
    o.planned_end = 150;
    o.ending = "failed: fragment: signal 9";
    CHECK(o.early_text() == "ended early, after 26 of 150 frames: failed: fragment: signal 9");
    o.end_requested_by = "SIGHUP";
    CHECK(o.early_text() == "ended early, after 26 of 150 frames: SIGHUP");
    o.ended_by = "camera";
    CHECK(o.early_text() == "ended early, after 26 of 150 frames: its source camera ended the stream");
    o.first = 20;
    CHECK(o.early_text() == "ended early, after 6 of 130 frames: its source camera ended the stream");
    for (const u64 none : {ring::end_unknown, ring::end_stopping}) {
        o.planned_end = none;
        CHECK_FALSE(o.ended_early());
    }
}

TEST_CASE("a complete run: no lost frames, its rate, its hash, its stages") {
    synthetic s;
    s.record(0, 10);
    s.control->stage[0].counters.frames.store(10);
    s.shares = {{0.5, 0, 0.4, 0.1}, {0.98, 0.01, 0, 0.9}};
    s.control->stage[0].counters.in_flight_high_water.store(3);
    for (int k = 0; k < 100; ++k)
        telemetry::add_sample(s.control->stage[0].counters.latency, k < 95 ? 1'000'000 : 50'000'000);
    const json r = s.report();
    CHECK(r["pipeline"] == "made");
    CHECK(r["size"] == json({64, 32}));
    CHECK(r["frames"] == 10);
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    CHECK(r["torn"] == 0);
    CHECK(r["frames_per_second"] == 5.0);
    CHECK(r["image_hash"].get<std::string>().size() == 16);
    const json& source = r["stages"][0];
    CHECK(source["frames"] == 10);
    CHECK(source["busy"] == 0.5);
    CHECK(source["wait_output"] == 0.4);
    CHECK(source["wait_own"] == 0.1);
    CHECK(r["bottleneck"] == json({{"kind", "stage"},
                                   {"stage", "sink"},
                                   {"busy", 0.98},
                                   {"text", "bottleneck: sink (busy 98 %)"}}));
    CHECK(source["in_flight_high_water"] == 3);
    CHECK(source["depth"] == json::array({json()}));
    CHECK(r["latency"] == "balanced");
    CHECK(r["depth_reason"].is_null());
    const f64 p50 = source["latency_ms"]["p50"], p99 = source["latency_ms"]["p99"];
    CHECK((p50 > 0.9 && p50 < 1.2));
    CHECK((p99 > 45 && p99 < 60));
    CHECK(source["pids"] == json({100}));
    CHECK(r["stages"][1].contains("end_to_end_ms"));
}

TEST_CASE("a run whose stages' time was not measured reports that and no share") {
    synthetic s;
    s.record(0, 10);
    const json r = s.report();
    CHECK(r["stages"][0]["busy"].is_null());
    CHECK(r["stages"][1]["wait_own"].is_null());
    CHECK(r["bottleneck"]["kind"] == "unknown");
}

TEST_CASE("lost, repeated and torn frames are found where they happen") {
    synthetic s;
    s.record(0, 4);
    s.record(6, 10);
    s.record(2, 3);  // committed once more
    s.control->stage[1].counters.torn.store(5);
    const json r = s.report();
    CHECK(r["lost"] == 2);
    CHECK(r["repeated"] == 1);
    CHECK(r["torn"] == 5);
    CHECK(damage_of(read_ledgers(s.setup, *s.control, 10), *s.control).any());
}

TEST_CASE("the hash depends only on the pictures and their order") {
    synthetic a, b, c;
    a.record(0, 10);
    b.record(5, 10);
    b.record(0, 5);
    c.record(0, 9);
    telemetry::ledger_writer other(telemetry::ledger_path(c.setup.directory, "sink"));
    other.record(9, 1234, false, 1);
    other.mark_committed(9, 1234, false, 1);
    CHECK(a.report()["image_hash"] == b.report()["image_hash"]);
    CHECK(a.report()["image_hash"] != c.report()["image_hash"]);
}

TEST_CASE("tombstone frames are dead letters with the stage and reason that the supervisor saw") {
    synthetic s;
    s.record(0, 10, 6);
    s.deaths.abandoned.push_back({6, "source", "signal 11 (SIGSEGV)"});
    s.deaths.abandoned.push_back({3, "source", "was delivered after all"});
    const json r = s.report();
    CHECK(r["lost"] == 0);
    CHECK(r["dead_letter_count"] == 1);
    REQUIRE(r["dead_letters"].size() == 1);
    CHECK(r["dead_letters"][0] ==
          json({{"ring_sequence", 6}, {"stage", "source"}, {"reason", "signal 11 (SIGSEGV)"}}));
}

TEST_CASE("given-up frames are reported with the first names and have an exit code of their own") {
    synthetic s;
    s.record(0, 10, 6);
    s.deaths.abandoned.push_back({6, "source", "signal 11 (SIGSEGV)"});
    const auto sinks = read_ledgers(s.setup, *s.control, 10);
    const dead_letter_list one = dead_letters_of(sinks, s.deaths);
    CHECK(dead_letters_text(one) == "1 given up (frame 6: source, signal 11 (SIGSEGV))");
    CHECK(dead_letters_text({}).empty());
    CHECK(dead_letters_text({5, {{1, "a", "x"}, {2, "", ""}, {3, "b", "y"}, {4, "c", "z"}, {5, "c", "z"}}}) ==
          "5 given up (frame 1: a, x; frame 2: the process is unknown; frame 3: b, y; ...)");
    run_outcome o;
    CHECK(exit_code_of(o, {}, one, 0) == exit_code::frames_abandoned);
    CHECK(exit_code_of(o, {}, one, 1) == 0);
    CHECK(exit_code_of(o, {true, 1, 0, 0}, one, 0) == exit_code::stage_failed);
    o.exit_code = 130;
    CHECK(exit_code_of(o, {}, one, 0) == 130);
}

TEST_CASE("the report names the source that ended a run, and none if no source ended it") {
    synthetic s;
    s.record(0, 10);
    CHECK(s.report()["ended_by"].is_null());
    CHECK(s.report("source")["ended_by"] == "source");
    CHECK(stream_end_text("made", "source", 10) ==
          "made: the stream ended before frame 10, as its source source reported");
}

TEST_CASE("if no sink is counted, the frames given up are those that the supervisor counted") {
    synthetic s;
    s.setup.stages[1].spec.group = group_kind::latest;
    s.deaths.abandoned.push_back({6, "source", "exit code 3"});
    CHECK(dead_letters_of(read_ledgers(s.setup, *s.control, 10), s.deaths).count == 1);
}

TEST_CASE("deaths: where they fell, how soon they were seen and fenced") {
    synthetic s;
    s.record(0, 10);
    s.deaths.kills_at[2] = 4;
    s.deaths.restarts = s.deaths.deaths = 4;
    for (const u64 ms : {1, 2, 3, 100})
        s.recoveries.push_back(
            {"source", 7, 1, "signal 9", 0, 1'000'000'000, 1'000'000'000 + ms * 1'000'000, 0, false});
    const json r = s.report();
    CHECK(r["kills_at"]["submitted"] == 4);
    CHECK(r["restarts"] == 4);
    CHECK(r["fence_ms"]["max"] == 100);
    CHECK(r["detection_ms"]["count"] == 0);
    CHECK(quantile({5, 1, 3}, 0.5) == 3);
    CHECK(quantile({}, 0.5) == 0);
}

TEST_CASE("a sink that has never begun has lost every frame") {
    const synthetic s;
    const json r = s.report();
    CHECK(r["lost"] == 10);
    CHECK(r["sinks"][0]["ledger"].is_null());
}

TEST_CASE("a frame recorded but committed by no process is lost") {
    synthetic s;
    s.record(0, 9);
    telemetry::ledger_writer(telemetry::ledger_path(s.setup.directory, "sink")).record(9, 64, false, 1);
    const json r = s.report();
    CHECK(r["lost"] == 1);
    CHECK(r["sinks"][0]["unmarked"] == 1);
    CHECK(damage_of(read_ledgers(s.setup, *s.control, 10), *s.control).any());
}

TEST_CASE("frames that skipped a port are reported only for a skipping port") {
    synthetic s;
    s.record(0, 10);
    CHECK_FALSE(s.report()["sinks"][0].contains("skipped"));
    s.setup.stages[1].spec.run = "port";
    s.setup.stages[1].spec.settings = {{"vacant", "skip"}};
    shm::stage_block& b = s.control->stage[1];
    s.control->link[b.input_link[0]].skipped[b.input_group[0]].store(7);
    CHECK(s.report()["sinks"][0]["skipped"] == 7);
    const auto sinks = read_ledgers(s.setup, *s.control, 10);
    CHECK_THAT(damage_text(damage_of(sinks, *s.control), sinks),
               test::contains("frames skip it while it has no program (vacant = \"skip\"): 7 of them"));
    SECTION("of a port that reads two rings the one where more have is told") {
        b.inputs = 2;
        b.input_link[1] = b.input_link[0];
        b.input_group[1] = b.input_group[0] + 1;
        s.control->link[b.input_link[0]].skipped[b.input_group[1]].store(9);
        CHECK(s.report()["sinks"][0]["skipped"] == 9);
        s.control->link[b.input_link[0]].skipped[b.input_group[1]].store(5);
        CHECK(s.report()["sinks"][0]["skipped"] == 7);
    }
    SECTION("and a damaged block leads nowhere") {
        b.inputs = ~0U;
        for (u32& link : b.input_link) link = shm::max_links;
        CHECK(s.report()["sinks"][0]["skipped"] == 0);
    }
}

TEST_CASE("if nothing was counted the report says so and has no result") {
    synthetic s;
    const auto why = GENERATE("latest", "optional");
    if (why == std::string("latest")) {
        s.setup.stages[1].spec.group = group_kind::latest;
    } else {
        s.record(0, 4);
        telemetry::frame_claims claims;
        claims.suspend(4);
        claims.save(telemetry::ledger_path(s.setup.directory, "sink"));
    }
    const json r = s.report();
    CHECK(r["lost"].is_null());
    CHECK(r["repeated"].is_null());
    CHECK(r["torn"] == 0);
    CHECK(r["image_hash"].is_null());
    CHECK(r["sinks"][0]["counted"] == false);
    CHECK(r["sinks"][0]["lost"].is_null());
    const auto sinks = read_ledgers(s.setup, *s.control, 10);
    const damage d = damage_of(sinks, *s.control);
    CHECK_FALSE(d.any());
    CHECK_THAT(damage_text(d, sinks),
               test::contains("lost and repeated frames were not counted, torn 0; sink not counted: ") &&
                   test::contains(why));
}

TEST_CASE("frames that skipped a failed optional sink are reported as skipped, not lost") {
    synthetic s;
    s.record(0, 4);
    s.record(8, 10);
    telemetry::frame_claims claims;
    claims.suspend(4);
    claims.resume(8);
    claims.save(telemetry::ledger_path(s.setup.directory, "sink"));
    const json r = s.report();
    CHECK(r["lost"] == 0);
    CHECK(r["sinks"][0]["counted"] == true);
    CHECK(r["sinks"][0]["skipped"] == 4);
    CHECK(r["sinks"][0]["image_hash"].is_null());  // the hash does not cover all frames
    const auto sinks = read_ledgers(s.setup, *s.control, 10);
    CHECK_THAT(damage_text(damage_of(sinks, *s.control), sinks),
               test::contains("lost 0, repeated 0, torn 0; 4 frames have skipped sink while it had failed"));
}

TEST_CASE("frames that a sink does not take are reported as such, and not as those of a failed sink") {
    synthetic s;
    s.setup.stages[1].spec.every = 5;
    begin_claims(s.setup);
    s.record(0, 1);
    s.record(5, 6);
    const auto sinks = read_ledgers(s.setup, *s.control, 10);
    CHECK(damage_text(damage_of(sinks, *s.control), sinks) ==
          "lost 0, repeated 0, torn 0; 8 frames have skipped sink (every = 5)");
}

// The next frame that the sink takes is 400,000, but no frame beyond 200,000 is known to exist.
TEST_CASE("the ledger of a sink that takes few frames is not folded beyond its last record") {
    synthetic s;
    s.setup.stages[1].spec.every = 200'000;
    s.setup.kept_records = 100;
    begin_claims(s.setup);
    s.record(0, 1);
    s.record(200'000, 200'001);
    ledger_store ledgers(s.setup);
    for (u64 k = 1; k < 4; ++k) CHECK(ledgers.tick(2 * k * ns_per_s) == "");
    const u64 folded = telemetry::folded_end(telemetry::ledger_path(s.setup.directory, "sink"));
    CHECK(folded > 0);
    CHECK(folded <= 199'901);
}

TEST_CASE("records of frames that a checkpoint may repeat are not folded") {
    synthetic s;
    s.setup.kept_records = 100;
    begin_claims(s.setup);
    s.record(0, 9000);
    const std::string ledger = telemetry::ledger_path(s.setup.directory, "sink");
    ledger_store ledgers(s.setup);
    CHECK(ledgers.tick(2 * ns_per_s, 4500) == "");
    CHECK(telemetry::folded_end(ledger) == telemetry::fold_step);
    CHECK(ledgers.tick(4 * ns_per_s) == "");
    CHECK(telemetry::folded_end(ledger) == 2 * telemetry::fold_step);
}

TEST_CASE("frames that passed a sink are counted if it is left out, and if it has no ledger") {
    synthetic s;
    s.setup.stages[1].spec.optional = true;
    const bool begun = GENERATE(true, false), excluded = GENERATE(true, false);
    if (begun) s.record(0, 3);
    telemetry::frame_claims claims;
    claims.suspend(3);
    if (!excluded) claims.resume(8);
    claims.save(telemetry::ledger_path(s.setup.directory, "sink"));
    const json sink = s.report()["sinks"][0];
    CHECK(sink["counted"] == !excluded);
    CHECK(sink["skipped"] == (excluded ? 7 : 5));
    CHECK(sink["lost"] == (excluded ? json() : json(begun ? 2 : 5)));
    const auto sinks = read_ledgers(s.setup, *s.control, 10);
    if (excluded)
        CHECK_THAT(damage_text(damage_of(sinks, *s.control), sinks),
                   test::contains("it has failed, and frames skip it (optional = true): 7 of them"));
}

TEST_CASE("the report names the hashed data, and prints no hash if there are several names") {
    synthetic s;
    s.record(0, 10);
    CHECK(s.report()["image_hash_of"] == "own");
    CHECK(s.report()["sinks"][0]["image_hash_of"] == "own");
    telemetry::ledger_writer w(telemetry::ledger_path(s.setup.directory, "sink"));
    const bool all = GENERATE(true, false);
    for (u64 n = all ? 0 : 5; n < 10; ++n) {
        w.record(n, {n * 7 + 1, "other.v1"}, false, 1);
        w.mark_committed(n, {n * 7 + 1, "other.v1"}, false, 1);
    }
    const json r = s.report();
    CHECK(r["image_hash_of"] == (all ? "other.v1" : "own, other.v1"));
    CHECK(r["sinks"][0]["image_hash"].is_null() == !all);
    CHECK(r["image_hash"].is_null() == !all);
}

TEST_CASE("a sink that gives no hashes is counted all the same") {
    synthetic s;
    telemetry::ledger_writer w(telemetry::ledger_path(s.setup.directory, "sink"));
    for (u64 n = 0; n < 10; ++n) {
        w.record(n, std::nullopt, false, 1);
        w.mark_committed(n, std::nullopt, false, 1);
    }
    const json r = s.report();
    CHECK(r["lost"] == 0);
    CHECK(r["sinks"][0]["records"] == 10);
    CHECK(r["image_hash"].is_null());
    CHECK(r["sinks"][0]["image_hash"].is_null());
}

TEST_CASE("a report is written completely, with the ledgers, and an invalid place is found before") {
    synthetic s;
    s.record(0, 10);
    s.setup.report_path = (s.folder.path / "r.json").string();
    check_report_path(s.setup.report_path);
    CHECK_FALSE(std::filesystem::exists(s.setup.report_path));
    write_report(s.setup.report_path, s.report(), s.setup, read_ledgers(s.setup, *s.control, 10));
    std::ifstream in(s.setup.report_path);
    CHECK(json::parse(in)["frames"] == 10);
    const auto kept = telemetry::ledger_reader::open(ledger_copy_path(s.setup.report_path, "sink"));
    REQUIRE(kept);
    CHECK(kept->summarize(10).lost == 0);
    for (const std::string& name : s.folder.names()) CHECK(name.find(".tmp") == std::string::npos);
    CHECK_THROWS_AS(check_report_path("/nowhere/r.json"), output_error);
    CHECK_THROWS_AS(check_report_path(s.folder.path.string()), output_error);
}

TEST_CASE("a ledger that can't be read is named in the account, and the report is written without it") {
    synthetic s;
    s.record(0, 10);
    const std::string folded = telemetry::folded_path(telemetry::ledger_path(s.setup.directory, "sink"));
    std::ofstream(folded) << "cut off";
    const std::vector<sink_account> sinks = read_ledgers(s.setup, *s.control, 10);
    REQUIRE(sinks.size() == 1);
    CHECK_FALSE(sinks[0].counted());
    CHECK_THAT(sinks[0].unreadable, test::contains(folded));
    CHECK_THAT(damage_text(damage_of(sinks, *s.control), sinks),
               test::contains("sink not counted: its ledger can't be read"));
    const std::string path = (s.folder.path / "r.json").string();
    write_report(path, s.report(), s.setup, sinks);
    std::ifstream in(path);
    const json report = json::parse(in);
    CHECK(report["sinks"][0]["counted"] == false);
    CHECK(report["lost"].is_null());
}

TEST_CASE("a ledger that can't be copied next to the report is reported after the report is written") {
    synthetic s;
    s.record(0, 10);
    const std::string path = (s.folder.path / "r.json").string();
    std::filesystem::create_directory(ledger_copy_path(path, "sink"));
    CHECK_THROWS_WITH(write_report(path, s.report(), s.setup, read_ledgers(s.setup, *s.control, 10)),
                      test::contains("the ledger of sink can't be kept") && test::contains("--report FILE"));
    std::ifstream in(path);
    CHECK(json::parse(in)["frames"] == 10);
}
