// Every shipped pipeline file is read, and its stages, the real programs, are queried. Another test runs
// them.

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "spec/describe.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::supervisor;

namespace {

std::vector<std::filesystem::path> shipped() {
    std::vector<std::filesystem::path> files;
    for (const auto& each : std::filesystem::directory_iterator(CAROUSEL_PIPELINES))
        if (each.path().extension() == ".toml" && each.path().stem() != "video" &&  // test_video.py runs it
            (test::has_extras || each.path().stem() != "inference"))
            files.push_back(each.path());
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace

TEST_CASE("every shipped pipeline exists, has its file's name and is wired correctly") {
    std::vector<std::string> names;
    for (const auto& file : shipped()) {
        INFO(file.string());
        const pipeline p = read_pipeline(file.string());
        CHECK(p.name == file.stem().string());
        names.push_back(p.name);
        const auto all = describe_stages(p);
        REQUIRE(all.size() == p.stages.size());
        CHECK_FALSE(all.front().format.is_null());
        CHECK(all.back().format.is_null());
        CHECK(all.back().commits_on_host);
    }
    for (const char* name : {"demo", "mesh", "workers", "fanout", "mixed", "fused", "ipc_memory",
                             "custom_stage", "knots", "history"})
        CHECK(std::count(names.begin(), names.end(), name) == 1);
    CHECK(std::count(names.begin(), names.end(), "inference") == (test::has_extras ? 1 : 0));
}

TEST_CASE("the parameters that demo.toml spells out are the defaults, to the bit") {
    const pipeline p = read_pipeline(CAROUSEL_PIPELINES "/demo.toml");
    CHECK(p.parameters.size() >= 6);
    const parameter_plan plan = plan_parameters(p, describe_stages(p));
    CHECK(plan.schema.type == "carousel.scene");
    CHECK(plan.values == plan.schema.initial_values());
}

TEST_CASE("looks.toml sets parameters of light and post, which demo.toml does not have") {
    const auto names_of = [](const char* file) {
        const pipeline p = read_pipeline(std::string(CAROUSEL_PIPELINES) + file);
        return plan_parameters(p, describe_stages(p)).schema.names();
    };
    const std::vector<std::string> looks = names_of("/looks.toml"), demo = names_of("/demo.toml");
    for (const char* name : {"sun", "fog", "tint", "roughness", "metallic", "bloom", "tone_map"}) {
        CHECK(std::count(looks.begin(), looks.end(), name) == 1);
        CHECK(std::count(demo.begin(), demo.end(), name) == 0);
    }
    CHECK(std::equal(demo.begin(), demo.end(), looks.begin()));  // those of the scene are first
}

TEST_CASE("the camera of knots.toml is where its comment states, and moves around") {
    const pipeline p = read_pipeline(CAROUSEL_PIPELINES "/knots.toml");
    const parameter_plan plan = plan_parameters(p, describe_stages(p));
    const auto at = [&](const char* name, u32 index) {
        return ring::parameter_schema::element_of(*plan.schema.find(name), plan.values, index);
    };
    CHECK(at("eye", 0) == 0);
    CHECK(at("eye", 1) == test::near(-0.8 + 15 * std::sin(0.42)));
    CHECK(at("eye", 2) == test::near(15 * std::cos(0.42)));
    CHECK(at("orbit", 0) == test::near(0.004));
}

TEST_CASE("a real stage's complaint has the file's line") {
    const auto refusal = [](const std::string& path, const nlohmann::json& value) -> std::string {
        try {
            (void)describe_stages(read_pipeline(CAROUSEL_PIPELINES "/demo.toml",
                                                {{"--set " + path, path, value, key_override::scope::path}}));
            return "";
        } catch (const config_error& e) {
            return e.what();
        }
    };
    CHECK_THAT(refusal("geometry.mesh", "bumpy-spere"),
               test::contains("--set geometry.mesh: stage \"geometry\": mesh = \"bumpy-spere\"") &&
                   test::contains("did you mean \"bumpy-sphere\"?"));
    CHECK_THAT(refusal("geometry.triangles", -1), test::contains("stage \"geometry\": triangles = -1"));
    CHECK_THAT(refusal("geometry.mesh", "/nowhere/x.obj"), test::contains("/nowhere/x.obj"));
    CHECK_THAT(refusal("display.out", "frame.png"), test::contains("--set display.out: stage \"display\""));
    CHECK_THAT(refusal("display.colour", 1), test::contains("unknown key \"colour\""));
}
