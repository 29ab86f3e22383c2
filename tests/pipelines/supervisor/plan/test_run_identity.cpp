#include "supervisor/plan/compatibility.hpp"

#include "spec/pipeline_keys.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

run_setup two_stages() {
    run_setup s;
    s.name = "demo";
    s.width = 640;
    s.height = 480;
    s.stages.resize(2);
    s.stages[0].spec.name = "geometry";
    s.stages[0].spec.settings = {{"triangles", 500}};
    s.stages[0].format = {{"type", "t"}};
    s.stages[1].spec.name = "display";
    s.stages[1].spec.input_indices = {0};
    s.stages[1].spec.settings = {{"out", "frame_%05d.png"}};
    return s;
}

std::string between(const run_setup& there, const run_setup& here) {
    return difference(identity_of(there), identity_of(here));
}

}  // namespace

TEST_CASE("equal pipelines identify the same run, for any folder of their files and any report path") {
    run_setup other = two_stages();
    other.file = "elsewhere.toml";
    other.report_path = "r.json";
    other.color = true;
    CHECK(between(two_stages(), other) == "");
}

TEST_CASE("a key that only one of two versions knows does not count if both read the same text") {
    const nlohmann::json there = identity_of(two_stages());
    nlohmann::json here = there;
    here["new_key"] = 1;
    here["stages"][0]["new_key"] = 1;
    here["stages"][1].erase("in_flight");
    const auto compared = [&] { return difference(common_keys(there, here), common_keys(here, there)); };
    CHECK(difference(there, here) != "");
    CHECK(compared() == "");
    here["stages"][1]["max_attempts"] = 5;
    CHECK(compared() == "stage display: max_attempts is 3 there and 5 here");
    here["stages"].erase(1);
    CHECK(compared() == "its stages are [\"geometry\",\"display\"] there and [\"geometry\"] here");
}

TEST_CASE("the difference of two pipelines is named with both values") {
    run_setup other = two_stages();
    SECTION("a stage's own setting") {
        other.stages[0].spec.settings["triangles"] = 1000;
        CHECK(between(two_stages(), other) ==
              "stage geometry: settings.triangles is 500 there and 1000 here");
    }
    SECTION("a setting that only one of them has") {
        other.stages[1].spec.settings.erase("out");
        CHECK(between(two_stages(), other) ==
              "stage display: settings.out is \"frame_%05d.png\" there and not there here");
    }
    SECTION("a key of the supervisor's") {
        other.stages[1].spec.in_flight = 5;
        CHECK(between(two_stages(), other) == "stage display: in_flight is \"auto\" there and 5 here");
    }
    SECTION("a stage's own deadline") {
        other.stages[0].spec.frame_timeout_ms = 300;
        CHECK(between(two_stages(), other) == "stage geometry: frame_timeout_ms is 2000 there and 300 here");
    }
    SECTION("words that stand for values are named as the file spells them") {
        other.stages[0].spec.restart = restart_policy::on_failure;
        CHECK(between(two_stages(), other) ==
              "stage geometry: restart is \"always\" there and \"on-failure\" here");
    }
    SECTION("every key of a stage is compared, but for the supervisor's own") {
        for (const std::string& key : stage_keys())
            CHECK(identity_of(other).at("stages").at(0).contains(key) == (key != "standby"));
        other.stages[0].spec.standby = true;
        CHECK(between(two_stages(), other) == "");
    }
    SECTION("the number of frames") {
        other.end = 17;
        CHECK(between(two_stages(), other) == "frames is 0 there and 17 here");
    }
    SECTION("other stages") {
        other.stages.resize(1);
        CHECK(between(two_stages(), other) ==
              "its stages are [\"geometry\",\"display\"] there and [\"geometry\"] here");
    }
    SECTION("the parameters at the start") {
        run_setup with = two_stages();
        with.parameters.schema = {
            .type = "test.lamp", .bytes = 4, .fields = {{.name = "level", .initial = {0.25}}}};
        with.parameters.values = with.parameters.schema.initial_values();
        other = with;
        other.parameters.schema.set(other.parameters.values, "level", 0.5);
        CHECK(between(with, other) == "parameters.values.level is 0.25 there and 0.5 here");
    }
}

TEST_CASE("a written identity is read again with the picture paths, and a damaged one is invalid") {
    const scratch_folder folder;
    run_setup prepared = two_stages();
    prepared.stages[1].spec.settings["out"] = "/runs/demo-1/frame_%05d.png";
    prepared.pictures = "/runs/demo-1";
    prepared.output_directory = "/runs/demo-1";
    prepared.stages[0].lanes = 11;
    prepared.stages[0].window = 13;
    prepared.depth_reason = "as there was room";
    write_identity(folder.path.string(), identity_of(two_stages()), prepared);
    const auto kept = read_identity(folder.path.string());
    REQUIRE(kept);
    CHECK(difference(kept->identity, identity_of(two_stages())) == "");
    run_setup again = two_stages();
    restore_outputs(*kept, again);
    CHECK(again.stages[1].spec.settings["out"] == "/runs/demo-1/frame_%05d.png");
    CHECK(again.pictures == "/runs/demo-1");
    CHECK(again.output_directory == "/runs/demo-1");
    again.stages[0].lanes = again.stages[0].window =
        2;  // there is less room now: the run itself has taken it
    restore_depths(kept->depths, again);
    CHECK(plan_of(again).stages[0].in_flight == 11);
    CHECK(plan_of(again).stages[0].window == 13);
    CHECK(again.depth_reason == "as there was room");
    folder.write("pipeline.json", "{\"digest\":\"0\",\"pipeline\":{}}");
    CHECK_FALSE(read_identity(folder.path.string()));
}
