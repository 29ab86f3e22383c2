// Options of the command line that override a pipeline file.

#include <filesystem>
#include <map>

#include "spec/options.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"

using namespace carousel;
using namespace carousel::test;
using supervisor::parse_pipeline;
using supervisor::pipeline;

namespace {

std::string display_stage(const std::string& name, const std::string& more) {
    return "[[stage]]\nname = \"" + name + "\"\nrun = \"carousel-display\"\ninputs = [\"geometry\"]\n" +
           more + "\n";
}

}  // namespace

TEST_CASE("overrides come before the checks and are named in their errors") {
    using supervisor::key_override;
    const auto set = [](const std::string& path, nlohmann::json value) {
        return std::vector<key_override>{
            {"--set " + path, path, std::move(value), key_override::scope::path}};
    };
    CHECK(parse_pipeline(chain, "p.toml", set("size", {64, 48})).width == 64);
    CHECK(parse_pipeline(chain, "p.toml", set("pipeline.frames", 7)).frames == 7);
    CHECK(parse_pipeline(chain, "p.toml", set("geometry.triangles", 5)).stages[0].settings.at("triangles") ==
          5);
    CHECK(parse_pipeline(chain, "p.toml", set("geometry.in_flight", 5)).stages[0].in_flight == 5);
    CHECK(parse_pipeline(chain, "p.toml", set("geometry.light.kind", "x")).stages[0].settings.dump() ==
          R"({"light":{"kind":"x"},"triangles":100})");
    CHECK(parse_pipeline(chain, "p.toml", set("link.geometry.window", 12)).links.at("geometry").window ==
          12U);
    CHECK(parse_pipeline(chain, "p.toml", set("parameters.spin", 0.5)).parameters.at("spin").value == 0.5);
    CHECK(refusal(chain, set("size", {0, 1})) ==
          "--set size: size = [0,1]: expected [width, height], each from 1 to 16384");
    CHECK_THAT(refusal(chain, set("sizee", 1)), contains("--set sizee: unknown key \"sizee\" in [pipeline]"));
    CHECK_THAT(refusal(chain, set("geometri.triangles", 1)),
               contains("--set geometri.triangles: no stage \"geometri\" in p.toml; its stages are geometry, "
                        "display; did you "
                        "mean \"geometry\"?"));
    CHECK_THAT(refusal(chain, set("link.display.window", 9)),
               contains("--set link.display.window: [link.display]: stage \"display\" has no output ring"));
    CHECK_THAT(refusal(chain, set("link.display", 9)), contains("expected link.STAGE.KEY"));
    CHECK_THAT(refusal(chain, set("a..b", 9)), contains("\"a..b\" is not a key"));
    CHECK(refusal(chain, set("geometry.in_flight", 99)) ==
          "--set geometry.in_flight: in_flight = 99: expected a whole number from 1 to 16, or \"auto\"");
}

TEST_CASE("a mesh is passed to every source and a picture pattern to every display") {
    using supervisor::key_override;
    const std::vector<key_override> both = {
        {"--mesh a.obj", "mesh", "a.obj", key_override::scope::sources},
        {"--out f_%d.png", "out", "x/f_%d.png", key_override::scope::displays}};
    const pipeline one = parse_pipeline(chain, "p.toml", both);
    CHECK(one.stages[0].settings.at("mesh") == (std::filesystem::current_path() / "a.obj").string());
    CHECK_FALSE(one.stages[0].settings.contains("out"));
    CHECK(one.stages[1].settings.at("out") == "x/f_%d.png");
    const std::string second =
        "[[stage]]\nname = \"other\"\nrun = \"bin/carousel-display\"\ninputs = [\"geometry\"]\n";
    const pipeline two = parse_pipeline(chain + second, "p.toml", both);
    CHECK(two.stages[1].settings.at("out") == "x/display/f_%d.png");
    CHECK(two.stages[2].settings.at("out") == "x/other/f_%d.png");
    CHECK_THAT(refusal(stage("a", "") + stage("b", "\"a\""), both),
               contains("--out f_%d.png: no stage of p.toml runs carousel-display"));
}

TEST_CASE("the option --out is for displays that write pictures and must name one of several") {
    const auto display = [](const std::string& name, const std::string& out) {
        return display_stage(name, "out = \"" + out + "\"");
    };
    const std::string source = stage("geometry", "");
    const auto outs = [](const std::string& text, std::vector<std::string> given) {
        supervisor::pipeline_options o;
        o.out = std::move(given);
        std::map<std::string, std::string> all;
        for (const auto& s : parse_pipeline(text, "p.toml", overrides_from(o)).stages)
            if (s.settings.contains("out")) all[s.name] = s.settings["out"].get<std::string>();
        return all;
    };
    using map = std::map<std::string, std::string>;
    const std::string fanout = source + display("pictures", "frame_%05d.png") + display("ledger", "");
    CHECK(outs(fanout, {"/x/f_%d.png"}) == map{{"pictures", "/x/f_%d.png"}, {"ledger", ""}});
    CHECK(outs(fanout, {"ledger=/x/f_%d.png"}) ==
          map{{"pictures", "frame_%05d.png"}, {"ledger", "/x/f_%d.png"}});
    CHECK(outs(fanout, {"/y/%d.png", "ledger=/x/f_%d.png"}) ==
          map{{"pictures", "/y/%d.png"}, {"ledger", "/x/f_%d.png"}});
    CHECK(outs(fanout, {""}) == map{{"pictures", ""}, {"ledger", ""}});
    CHECK(outs(fanout, {"pictures="}) == map{{"pictures", ""}, {"ledger", ""}});
    CHECK(outs(source + display("one", ""), {"/x/a=b_%d.png"}) ==
          map{{"one", "/x/a=b_%d.png"}});  // the only process is addressed
    const std::string silent = source + display("one", "") + display("two", "none");
    const auto refused = [&](const std::string& text, const std::string& given) {
        supervisor::pipeline_options o;
        o.out = {given};
        return refusal(text, overrides_from(o));
    };
    CHECK_THAT(refused(silent, "/x/%d.png"),
               contains("--out '/x/%d.png': several displays of p.toml can write pictures; choose one") &&
                   contains("--out 'one=frame_%05d.png' (the displays are one, two)"));
    CHECK_THAT(refused(fanout, "pictres=/x/%d.png"),
               contains("no stage \"pictres\"") && contains("did you mean \"pictures\"?"));
    CHECK(outs(source + stage("sink", "\"geometry\""), {""}).empty());  // nothing to turn off
}

TEST_CASE("the option --keep is for the displays that write pictures") {
    const std::string text = stage("geometry", "") + display_stage("pictures", "keep = 100") +
                             display_stage("ledger", "out = \"\"");
    supervisor::pipeline_options o;
    o.keep = "7";
    const pipeline p = parse_pipeline(text, "p.toml", overrides_from(o));
    CHECK(p.find("pictures")->settings.at("keep") == 7);
    CHECK_FALSE(p.find("ledger")->settings.contains("keep"));
    o.keep = "many";
    CHECK_THROWS_WITH(overrides_from(o), contains("--keep many: expected a whole number of pictures"));
}

TEST_CASE("a mesh or texture path is relative to the file, on the command line to the user's folder") {
    const auto settings_of = [](const std::string& lines,
                                const std::vector<supervisor::key_override>& overrides = {}) {
        const std::string text =
            "[[stage]]\nname = \"a\"\nrun = \"x\"\n" + lines + stage("b", "\"a\"", "mesh = \"own.key\"");
        const supervisor::pipeline p = supervisor::parse_pipeline(text, "/some/where/p.toml", overrides);
        CHECK(p.find("b")->settings.at("mesh") == "own.key");  // no source: its own business
        return p.find("a")->settings;
    };
    const std::string here = std::filesystem::current_path().string();
    const auto in_file = settings_of("mesh = \"../models/a.obj\"\ntexture = \"b.png\"\n");
    CHECK(in_file.at("mesh") == "/some/models/a.obj");
    CHECK(in_file.at("texture") == "/some/where/b.png");
    const auto absolute = settings_of("mesh = \"/a.obj\"\ntexture = \"checker\"\n");
    CHECK(absolute.at("mesh") == "/a.obj");
    CHECK(absolute.at("texture") == "checker");
    const auto typed = settings_of("mesh = \"a.obj\"\n", {{"--set a.texture=b.png", "a.texture", "b.png"}});
    CHECK(typed.at("mesh") == "/some/where/a.obj");
    CHECK(typed.at("texture") == here + "/b.png");
}

TEST_CASE("the options record and record-to set those keys, relative to the user's folder") {
    supervisor::pipeline_options o;
    o.record = {"geometry"};
    o.record_to = "run.mcap";
    const pipeline p = parse_pipeline(chain, "dir/p.toml", overrides_from(o));
    REQUIRE(p.find("record") != nullptr);
    CHECK(p.find("record")->inputs == std::vector<std::string>{"geometry"});
    CHECK(p.find("record")->settings.at("out") == (std::filesystem::current_path() / "run.mcap").string());
}
