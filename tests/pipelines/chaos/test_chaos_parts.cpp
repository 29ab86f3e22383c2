// `carousel chaos` without a pipeline: its plan, what it calls a pause, and its verdict.
#include <map>
#include <tuple>

#include "chaos/faults.hpp"
#include "chaos/run.hpp"
#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::supervisor;
using namespace carousel::supervisor::chaos;
using nlohmann::json;

namespace {

constexpr u64 ms = 1'000'000;

std::vector<fault> all_kinds() {
    std::vector<fault> out;
    for (const fault_row& row : fault_table) out.push_back(row.kind);
    return out;
}

/// A run of 100 frames in which fragment (pid 10) was killed and the supervisor was replaced once.
outcome made() {
    outcome o;
    o.begun_ns = 1'000 * ms;
    o.ended_ns = 9'000 * ms;
    o.faults.push_back({0, fault::kill, 2'000 * ms, "fragment", 10, 2, 0});
    o.faults.push_back({1, fault::supervisor, 3'000 * ms, "", 5, ~0U, 3'200 * ms});
    o.pauses.push_back({1, 1'990 * ms, 2'001 * ms, 2'040 * ms});
    o.pauses.push_back({2, 1'990 * ms, 2'001 * ms, 2'900 * ms});
    o.report = {
        {"frames", 100},          {"lost", 0},           {"repeated", 0},   {"torn", 0},
        {"dead_letter_count", 0}, {"image_hash", "abc"}, {"taken_over", 1}, {"frames_per_second", 12.5}};
    o.report["recoveries"] = {{{"seat", "fragment"},
                               {"pid", 10},
                               {"epoch", 1},
                               {"seen_ns", 2'001 * ms},
                               {"fenced_ns", 2'003 * ms},
                               {"followed_ns", 2'030 * ms}}};
    o.calm = {{"image_hash", "abc"}, {"frames", 100}, {"frames_per_second", 25.0}};
    return o;
}

}  // namespace

TEST_CASE("chaos: the same seed plans the same faults, another seed others") {
    plan a(7, all_kinds(), 0.5), b(7, all_kinds(), 0.5), c(8, all_kinds(), 0.5);
    bool differs = false;
    std::map<fault, int> seen;
    f64 waited = 0;
    for (u64 k = 0; k < 4000; ++k) {
        const step x = a.next(), y = b.next(), z = c.next();
        REQUIRE(x.number == k);
        REQUIRE((x.kind == y.kind && x.victim_index == y.victim_index && x.wait_s == y.wait_s &&
                 x.supervisor_gap_s == y.supervisor_gap_s));
        differs = differs || x.kind != z.kind;
        REQUIRE((x.wait_s >= 0 && x.supervisor_gap_s >= 0 && x.supervisor_gap_s < 0.4));
        waited += x.wait_s;
        ++seen[x.kind];
    }
    CHECK(differs);
    CHECK(seen.size() == fault_table.size());
    CHECK(seen[fault::kill] > seen[fault::supervisor]);
    CHECK((waited / 4000 > 0.45 && waited / 4000 < 0.55));
    CHECK(plan(7, {fault::stop}, 0).next().wait_s == 0);
}

TEST_CASE("chaos: faults are named on the command line, and a misspelt one gets a suggestion") {
    CHECK(faults_from("kill") == std::vector<fault>{fault::kill});
    CHECK(faults_from("gpu-fault,kill,gpu-fault") == std::vector<fault>{fault::gpu_fault, fault::kill});
    CHECK_THROWS_WITH(faults_from("kill,hnag"), test::contains("did you mean \"hang\""));
    CHECK_THROWS_AS(faults_from(""), config_error);
}

TEST_CASE("chaos: a fault that no stage can take is left out of the plan, and refused if requested") {
    victim v{"middle", 10, 1, true};
    v.on_gpu = v.guarded = v.gapped = v.closed = true;
    CHECK(choose_kinds({}, {v}, "f.toml") == all_kinds());
    const std::tuple<fault, bool victim::*, const char*> needs[] = {
        {fault::gpu_fault, &victim::on_gpu, "no stage of f.toml runs on a GPU here"},
        {fault::gpu_lost, &victim::on_gpu, "no stage of f.toml runs on a GPU here"},
        {fault::scribble_input, &victim::guarded, "has a guarded input"},
        {fault::overrun_output, &victim::gapped, "no stage of f.toml has gaps or canaries"},
        {fault::scribble_control, &victim::closed, "can write to the whole control block"},
    };
    for (const auto& [kind, guard, words] : needs) {
        victim open = v;
        open.*guard = false;
        std::vector<fault> others = all_kinds();
        std::erase(others, kind);
        if (guard == &victim::on_gpu)
            std::erase_if(others, [](fault f) { return f == fault::gpu_fault || f == fault::gpu_lost; });
        CHECK(choose_kinds({}, {open, open}, "f.toml") == others);
        CHECK(choose_kinds({fault::kill, kind}, {open, v}, "f.toml").size() == 2);
        CHECK_THROWS_WITH(choose_kinds({fault::kill, kind}, {open, open}, "f.toml"), test::contains(words));
    }
}

TEST_CASE("chaos: a stage's pause counts for the fault that caused it, the victim's own does not") {
    const std::vector<chaos::pause> all{{0, 10 * ms, 14 * ms, 30 * ms}, {1, 50 * ms, 54 * ms, 160 * ms}};
    CHECK(longest_pause_ms(all, 2, 12 * ms, 20 * ms) == 20);
    CHECK(longest_pause_ms(all, 0, 12 * ms, 20 * ms) == 0);
    CHECK(longest_pause_ms(all, 2, 55 * ms, 90 * ms) == 0);  // it had begun before
    CHECK(longest_pause_ms(all, ~0U, 0, 900 * ms) == 110);
}

TEST_CASE("chaos: each fault is joined with the death that it led to") {
    const json r = make_report({}, made());
    CHECK(r["passed"] == true);
    CHECK(r["failures"].empty());
    CHECK(r["faults"] == 2);
    const json& kill = r["kinds"]["kill"];
    CHECK(kill["count"] == 1);
    CHECK(kill["detection_ms"]["max"] == 1);
    CHECK(kill["fence_ms"]["max"] == 2);
    CHECK(kill["takeover_ms"]["max"] == 30);
    CHECK(kill["others_longest_pause_ms"]["max"] == 50);
    CHECK(r["kinds"]["supervisor"]["takeover_ms"]["max"] == 200);
    CHECK_THAT(report_text(r), test::contains("lost 0, repeated 0, torn 0"));
}

TEST_CASE("chaos: the report has the times per part and how often no standby was ready") {
    outcome o = made();
    o.spent_s = {{"start", 3.5}, {"faults", 14}, {"all back", 2}};
    CHECK_THAT(report_text(make_report({}, o)),
               test::contains("time spent on: start 3.5s, faults 14s, all back 2.0s\n"));
    CHECK(report_text(make_report({}, o)).find("standby") == std::string::npos);
    o.report["standby_takeovers"] = 7;
    o.report["standby_missed"] = {{"none", 1}, {"starting", 3}, {"untried", 0}};
    CHECK_THAT(report_text(make_report({}, o)),
               test::contains("standbys took over 7 times; 4 times no standby could (1 not started yet, 3 "
                              "starting, 0 not used"));
}

TEST_CASE("chaos: a death long after a fault, of a process with the same pid, is not the fault's") {
    outcome o = made();
    // it was already dying: not a separate death
    o.faults.insert(o.faults.begin(), {0, fault::kill, 1'500 * ms, "vertex", 99, 1, 0});
    o.report["recoveries"].push_back(
        {{"seat", "fragment"}, {"pid", 99}, {"epoch", 9}, {"seen_ns", 4'000 * ms}});
    o.report["recoveries"].push_back(
        {{"seat", "vertex"}, {"pid", 99}, {"epoch", 12}, {"seen_ns", 900'000 * ms}});
    const json r = make_report({}, o);
    CHECK(r["kinds"]["kill"]["detection_ms"]["count"] == 1);
    CHECK(r["kinds"]["kill"]["detection_ms"]["max"] == 1);
}

TEST_CASE("chaos: sharing the end of an MPS domain is neither an injected nor an unexpected death") {
    const auto death = [](const char* seat, i32 pid, u64 at_ms, const char* how, u64 end, bool shared) {
        return json{{"seat", seat}, {"pid", pid},        {"epoch", 1},      {"seen_ns", at_ms * ms},
                    {"how", how},   {"domain_end", end}, {"shared", shared}};
    };
    outcome o = made();
    o.report["mps"] = {{"domain_faults", 2}, {"abandoned", false}};
    json& all = o.report["recoveries"];
    all[0]["domain_end"] = 1;  // fragment, which was killed
    SECTION("killed with it, or without a device because of it") {
        all.push_back(death("vertex", 9, 2'002, "with its MPS domain", 1, true));
        all.push_back(death("display", 11, 2'001, "exit code 3", 1, true));
        all.push_back(death("geometry", 8, 2'000, "exit code 70 (GPU fault)", 1, true));
        const json r = make_report({}, o);
        CHECK(r["untouched_deaths"] == 0);
        CHECK(r["passed"] == true);
    }
    SECTION("but who crashes beside it has done so by its own hand") {
        all.push_back(death("vertex", 9, 2'002, "signal 11 (SIGSEGV)", 1, false));
        CHECK(make_report({}, o)["untouched_deaths"] == 1);
    }
    SECTION("and an end into which no fault fell is nobody's work here: all its deaths count") {
        all.push_back(death("vertex", 9, 5'000, "exit code 70 (GPU fault)", 2, true));
        all.push_back(death("display", 11, 5'001, "with its MPS domain", 2, true));
        const json r = make_report({}, o);
        CHECK(r["untouched_deaths"] == 2);
        CHECK_THAT(r["failures"].dump(), test::contains("the first: vertex (pid 9), exit code 70"));
    }
    SECTION("nor does a fault that came behind a death explain it") {
        all[0]["seen_ns"] = 1'999 * ms;
        all.push_back(death("vertex", 9, 1'999, "with its MPS domain", 1, true));
        CHECK(make_report({}, o)["untouched_deaths"] == 1);
    }
}

TEST_CASE("chaos: sinks that give no hash are compared by count, several sinks one by one") {
    outcome o = made();
    o.report["image_hash"] = o.calm["image_hash"] = nullptr;
    for (json* r : {&o.report, &o.calm})
        (*r)["sinks"] = {{{"stage", "sink"}, {"records", 100}, {"image_hash", nullptr}},
                         {{"stage", "second"}, {"records", 100}, {"image_hash", "abc"}}};
    const json passed = make_report({}, o);
    CAPTURE(passed["failures"].dump());
    CHECK(passed["passed"] == true);
    CHECK_THAT(report_text(passed),
               test::contains("frames counted instead: 100, and 100 in the fault-free run"));
    SECTION("a frame less") { o.report["sinks"][0]["records"] = 99; }
    SECTION("another picture in the second") { o.report["sinks"][1]["image_hash"] = "abd"; }
    CHECK(make_report({}, o)["passed"] == (o.report["sinks"] == o.calm["sinks"]));
}

TEST_CASE("chaos: hashes of different names are reported and never compared") {
    outcome o = made();
    o.report["image_hash_of"] = o.calm["image_hash_of"] = "a.v1";
    CHECK(make_report({}, o)["passed"] == true);
    CHECK(make_report({}, o)["calm"]["image_hash_of"] == "a.v1");
    SECTION("of the same value") {}
    SECTION("of another value") { o.calm["image_hash"] = "abd"; }
    o.calm["image_hash_of"] = "a.v2";
    const json r = make_report({}, o);
    CHECK(r["passed"] == false);
    CHECK_THAT(r["failures"].dump(),
               test::contains("can't be compared") && test::contains("a.v1") && test::contains("a.v2"));
    CHECK_THAT(r["failures"].dump(), !test::contains("differs"));
}

TEST_CASE("chaos: a ledger or reference whose hashes have several names is not accepted as proof") {
    outcome o = made();
    o.report["image_hash_of"] = o.calm["image_hash_of"] = "a.v1, a.v2";
    o.report["image_hash"] = o.calm["image_hash"] = nullptr;
    CHECK(make_report({}, o)["passed"] == false);
}

TEST_CASE("chaos: each kind of error is reported as a failure by name") {
    const auto fails_with = [](auto change, const std::string& word) {
        outcome o = made();
        change(o);
        const json r = make_report({}, o);
        CAPTURE(word, r["failures"].dump());
        CHECK(r["passed"] == false);
        CHECK_THAT(r["failures"].dump(), test::contains(word));
    };
    fails_with([](outcome& o) { o.report["lost"] = 1; }, "lost: 1");
    fails_with([](outcome& o) { o.report["repeated"] = 2; }, "repeated: 2");
    fails_with([](outcome& o) { o.report["torn"] = 3; }, "torn: 3");
    fails_with([](outcome& o) { o.report["lost"] = nullptr; }, "lost: not counted");
    fails_with([](outcome& o) { o.calm["frames"] = 99; }, "frames: 100, in the fault-free run 99");
    fails_with([](outcome& o) { o.report["dead_letter_count"] = 1; }, "dead_letter_count");
    fails_with([](outcome& o) { o.calm["image_hash"] = "abd"; }, "image_hash");
    fails_with([](outcome& o) { o.report["taken_over"] = 0; }, "takeovers");
    fails_with(
        [](outcome& o) {
            o.report["mps"] = {{"domain_faults", 4}, {"abandoned", true}};
        },
        "abandoned after it had ended 4 times");
    fails_with([](outcome& o) { o.exit_code = 1; }, "exit code 1");
    fails_with([](outcome& o) { o.ended_early = true; }, "before all faults");
    fails_with([](outcome& o) { o.leaked.push_back("shared memory /dev/shm/x"); }, "left over");
    fails_with([](outcome& o) { o.gpu_mib_before = 5, o.gpu_mib_after = 6; }, "GPU memory");
    fails_with([](outcome& o) { o.report = json(); }, "no report");
    fails_with(
        [](outcome& o) {
            o.report["recoveries"].push_back({{"seat", "vertex"},
                                              {"pid", 99},
                                              {"epoch", 1},
                                              {"seen_ns", 4'000 * ms},
                                              {"how", "deadline missed"}});
        },
        "died without an injected fault; the first: vertex (pid 99), deadline missed");
}

TEST_CASE("chaos: several hosts have one account, by this host's clock") {
    json r = {{"lost", nullptr}, {"repeated", nullptr},   {"torn", 1},     {"dead_letter_count", 0},
              {"restarts", 2},   {"image_hash", nullptr}, {"frames", 100}, {"kills_at", {{"open", 1}}},
              {"taken_over", 1}, {"sinks", json::array()}};
    r["recoveries"] = {{{"seat", "source"}, {"pid", 10}, {"seen_ns", 2'000 * ms}}};
    CHECK(over_hosts(r) == r);
    r["hosts"]["b"] = {
        {"lost", 3},
        {"repeated", 0},
        {"torn", 0},
        {"restarts", 4},
        {"image_hash", "abc"},
        {"image_hash_of", "bytes"},
        {"taken_over", 7},
        {"kills_at", {{"open", 2}, {"idle", 5}}},
        {"sinks", {{{"stage", "sink"}, {"records", 97}}}},
        {"clock", {{"ahead_ms", 1'000.0}, {"error_ms", 0.5}}},
        {"recoveries",
         {{{"seat", "sink"}, {"pid", 10}, {"seen_ns", 3'000 * ms}, {"followed_ns", 3'020 * ms}}}}};
    const json all = over_hosts(r);
    CHECK(all["lost"] == 3);
    CHECK(all["repeated"] == 0);
    CHECK(all["torn"] == 1);
    CHECK(all["restarts"] == 6);
    CHECK(all["taken_over"] == 1);  // of the supervisor here: it is the one that is killed
    CHECK(all["image_hash"] == "abc");
    CHECK(all["kills_at"] == json{{"open", 3}, {"idle", 5}});
    CHECK(all["sinks"][0]["stage"] == "b/sink");
    CHECK(all["recoveries"][1]["seat"] == "b/sink");
    CHECK(all["recoveries"][1]["seen_ns"] == 2'000 * ms + ms / 2);  // never before what caused it
    CHECK(all["recoveries"][1]["followed_ns"] == 2'020 * ms + ms / 2);
    CHECK_FALSE(all["recoveries"][1].contains("fenced_ns"));
    r["hosts"]["b"] = {{"ending", "not known"}};  // no figures are known: none is counted
    CHECK(over_hosts(r)["lost"].is_null());
}
