#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "cli/command.hpp"
#include "core/json.hpp"
#include "os/table.hpp"
#include "shm/injected_fault.hpp"
#include "spec/options.hpp"
#include "spec/pipeline_keys.hpp"
#include "tests/pipelines/spec/world.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

namespace {

/// A pipeline file whose stages exist.
std::string runnable(const world& w, const std::string& text = two_stages) {
    w.program("source", source_body);
    w.program("sink", sink_body);
    w.program("carousel-display", sink_body);
    return w.write("p.toml", text);
}

void is_usage(const std::vector<std::string>& words, const std::string& text) {
    const command_result s = carousel::test::carousel(words);
    CHECK(s.code == 2);
    CHECK(s.out.empty());
    CHECK_THAT(s.err, Catch::Matchers::StartsWith("error: "));
    CHECK_THAT(s.err, contains(text));
}

std::string offered(std::vector<std::string> words) {
    words.insert(words.begin(), "__complete");
    const command_result s = carousel::test::carousel(words);
    CHECK(s.code == 0);
    CHECK(s.err.empty());
    return s.out;
}

}  // namespace

TEST_CASE("usage errors are sentences and end with 2") {
    is_usage({}, "no command given");
    is_usage({"rnu"}, "unknown command \"rnu\"; the commands are run, validate, ps");
    is_usage({"rnu"}, "did you mean \"run\"?");
    is_usage({"--frames", "3"}, "\"--frames\" is an option of a command, e.g. `carousel run FILE --frames`");
    is_usage({"run"}, "FILE is required (see `carousel run --help`)");
    is_usage({"run", "x.toml", "--framse", "3"},
             "carousel run: unknown option \"--framse\"; did you mean \"--frames\"?");
    is_usage({"trace", "x.json", "--near", "y.json"}, "did you mean \"--coordinator\"?");
    is_usage({"run", "x.toml", "y.toml"}, "unexpected argument \"y.toml\"");
    is_usage({"run", "x.toml", "--frames"}, "--frames");
    is_usage({"run", "x.toml", "--wait", "soon"}, "--wait soon: expected seconds, 0 or more");
    is_usage({"run", "x.toml", "--seconds", "-1"}, "--seconds -1: expected seconds, 0 or more");
    is_usage({"run", "/nowhere.toml"}, "/nowhere.toml: the pipeline file does not exist");
    is_usage({"kill"}, "STAGE is required");
    is_usage({"up"}, "STAGE is required");
    is_usage({"up", "nosuch.toml"}, "nosuch.toml: the pipeline file does not exist");
    is_usage({"up", "fragment", "--frames", "3"}, "--frames needs a pipeline file, but fragment is not one");
    is_usage({"up", "fragment", "--insecure"}, "--insecure needs a pipeline file, but fragment is not one");
    is_usage({"up", "a.toml", "b"}, "a.toml is a pipeline file and must be the only argument");
    is_usage({"logs", "-n", "x"}, "-n x: expected a number of lines");
    is_usage({"logs", "--since", "x"}, "--since x: expected a span");
    is_usage({"graph"}, "expected a FILE, or -p NAME");
    is_usage({"graph", "x.toml", "--live"}, "not both");
    is_usage({"graph", "x.toml", "--format", "svg"}, "--format");
    is_usage({"completion", "tcsh"}, "tcsh");
    is_usage({"inject", "x", "--fault", "hnag"},
             "unknown fault; expected " + shm::fault_names(", ") + "; did you mean \"hang\"?");
    is_usage({"inject", "x", "--fault", "nothing"}, "--fault nothing: unknown fault");
    is_usage({"kill", "x", "--signal", "NOPE"}, "--signal NOPE: unknown signal");
}

TEST_CASE(
    "commands of extras have usage errors, completions and examples in the help, as those of the core") {
    CAROUSEL_NEEDS_EXTRAS();
    is_usage({"hold", "lab", "--device", "cuda:1x"}, "expected cpu or cuda:N, like cuda:0");
    is_usage({"hold", "lab", "--device", "cuda:64"}, "expected cpu or cuda:N, like cuda:0");
    is_usage({"lab", "5", "--no-ask"}, "did you mean \"--no-prediction\"?");
    is_usage({"chaos", "x.toml", "--duration", "soon"}, "--duration soon: expected seconds, 0 or more");
    is_usage({"bench", "rastr"}, "is not one of raster, pipeline, ipc; did you mean \"raster\"?");
    CHECK(offered({"chaos", "x.toml", "--device", "=", "cu"}) == "cuda:0\n");
    CHECK(offered({"bench", "raster", "--scene", "quad"}) == "quad-stack\nquad-stack-front-first\n");
    CHECK(offered({"bench", "pipeline", "--size", "64"}) == "640x480\n");
    const std::string help = carousel::test::carousel({"--help"}).out;
    for (const char* example :
         {"\n  carousel chaos pipelines/demo.toml ", "\n  carousel doctor ", "\n  carousel new stage blur "})
        CHECK_THAT(help, contains(example));
}

TEST_CASE("help and version are no errors") {
    const command_result help = carousel::test::carousel({"--help"});
    CHECK(help.code == 0);
    CHECK_THAT(help.out, contains("carousel run pipelines/demo.toml") && contains("validate"));
    const command_result run = carousel::test::carousel({"run", "--help"});
    CHECK(run.code == 0);
    CHECK_THAT(run.out, contains("--set") && contains("--report") && contains("Examples:"));
    CHECK(run.out.find("->") == std::string::npos);  // once a slip of the pen stood in it
    CHECK(run.out.find("--in-background") == std::string::npos);
    for (const char* command : {"up", "logs", "top", "graph", "completion"}) {
        const command_result text = carousel::test::carousel({command, "--help"});
        CHECK_THAT(text.out, contains("Exit code") || contains("Examples:"));
    }
    const command_result version = carousel::test::carousel({"--version"});
    CHECK(version.code == 0);
    CHECK_THAT(version.out, Catch::Matchers::StartsWith("carousel "));
}

TEST_CASE("every command that Tab offers has its line in the help and a help of its own") {
    const std::string help = carousel::test::carousel({"--help"}).out;
    std::istringstream offered(carousel::test::carousel({"__complete", ""}).out);
    std::size_t commands = 0;
    for (std::string name; std::getline(offered, name); ++commands) {
        INFO(name);
        CHECK_THAT(help, contains("\n  " + name + " "));
        const command_result own = carousel::test::carousel({name, "--help"});
        CHECK(own.code == 0);
        CHECK_THAT(own.out, contains("Usage: " + name + " "));
    }
    CHECK(commands == supervisor::all_commands().size());
}

TEST_CASE("Tab completes an option's value with the registered values, and with none otherwise") {
    CHECK(offered({"run", "--device", ""}) == "auto\ncpu\ncuda:0\n");
    CHECK(offered({"run", "x.toml", "--device", "=", "cu"}) == "cuda:0\n");
    CHECK(offered({"run", "x.toml", "--seconds", ""}).empty());
    CHECK(offered({"kill", "a", "-s", "ST"}) == "STOP\n");
    CHECK(offered({"graph", "--format", "="}) == "dot\nmermaid\n");
    CHECK(offered({"completion", ""}) == "bash\nfish\nzsh\n");
    CHECK(offered({"run", "--in"}) == "--insecure\n");  // --in-background is hidden
    CHECK(offered({"trace", ""}).empty());              // a file that isn't there yet
}

TEST_CASE("Tab's and help's lists of faults are those of the table of faults") {
    std::set<std::string> names;
    const std::string help = carousel::test::carousel({"inject", "--help"}).out;
    for (const shm::injected_fault_row& row : shm::injected_faults) {
        names.insert(row.name);
        CHECK_THAT(help, contains(row.name) && contains(row.remark));
    }
    CHECK(carousel::test::carousel({"__complete", "inject", "--fault", ""}).out ==
          fmt::format("{}\n", fmt::join(names, "\n")));
}

TEST_CASE("run hands the checked pipeline and its options to the engine") {
    const world w;
    const std::string file = runnable(
        w, two_stages + "[[stage]]\nname = \"show\"\nrun = \"./carousel-display\"\ninputs = [\"a\"]\n");
    runs = 0;
    const command_result s = carousel::test::carousel({"run",
                                                       file,
                                                       "--device",
                                                       "cpu",
                                                       "--frames",
                                                       "20",
                                                       "--fps",
                                                       "30",
                                                       "--size",
                                                       "64x48",
                                                       "--mesh",
                                                       "torus-knots",
                                                       "--out",
                                                       "",
                                                       "-p",
                                                       "mine",
                                                       "--report",
                                                       "r.json",
                                                       "--set",
                                                       "b.own=[1, 2]",
                                                       "--set",
                                                       "link.a.window=12",
                                                       "--set",
                                                       "latest_lease_ms=9",
                                                       "--allow-dead-letters",
                                                       "3",
                                                       "--seconds",
                                                       "1.5",
                                                       "--wait",
                                                       "2"});
    INFO(s.err);
    CHECK(s.code == 0);
    REQUIRE(runs == 1);
    CHECK(last_pipeline.name == "mine");
    CHECK(last_pipeline.latest_lease_ms == 9);
    CHECK(last_pipeline.allow_dead_letters == 3);
    CHECK(last_pipeline.device == "cpu");
    CHECK(last_pipeline.frames == 20);
    CHECK(last_pipeline.fps == 30);
    CHECK(last_pipeline.width == 64);
    CHECK(last_pipeline.height == 48);
    CHECK(last_pipeline.find("a")->settings.at("mesh") == "torus-knots");
    CHECK(last_pipeline.find("b")->settings.at("own") == json({1, 2}));
    CHECK_FALSE(last_pipeline.find("b")->settings.contains("out"));
    CHECK(last_pipeline.find("show")->settings.at("out") == "");
    CHECK(last_pipeline.links.at("a").window == 12U);
    CHECK(last_options.report_file == "r.json");
    CHECK(last_options.seconds == 1.5);
    CHECK(last_options.wait_s == 2);
    CHECK_FALSE(last_options.color);
    CHECK(last_options.stages.empty());  // asked once the run's lock is held
}

TEST_CASE("a display keeps what its file sets, all with --frames, and what --keep sets always") {
    const world w;
    const std::string file = runnable(
        w, two_stages +
               "[[stage]]\nname = \"show\"\nrun = \"./carousel-display\"\ninputs = [\"a\"]\nkeep = 100\n");
    const auto kept = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"run", file});
        const command_result s = carousel::test::carousel(words);
        INFO(s.err);
        CHECK(s.code == 0);
        CHECK_FALSE(last_pipeline.find("b")->settings.contains("keep"));
        return last_pipeline.find("show")->settings.at("keep").get<int>();
    };
    CHECK(kept({}) == 100);
    CHECK(kept({"--frames", "50"}) == 0);
    CHECK(kept({"--frames", "0"}) == 100);
    CHECK(kept({"--frames", "50", "--keep", "7"}) == 7);
    CHECK(kept({"--keep", "0"}) == 0);
    CHECK(kept({"--frames", "50", "--set", "show.keep=9"}) == 9);
    CHECK(kept({"--set", "frames=50"}) == 100);
}

TEST_CASE("wrong options are refused by name before anything runs") {
    const world w;
    const std::string file = runnable(w);
    runs = 0;
    const auto refused = [&](const std::vector<std::string>& more) {
        std::vector<std::string> words = {"run", file};
        words.insert(words.end(), more.begin(), more.end());
        const command_result s = carousel::test::carousel(words);
        CHECK(s.code == 2);
        return s.err;
    };
    CHECK_THAT(refused({"--frames", "-5"}),
               contains("--frames -5: expected a whole number of frames, 0 (no limit) or more"));
    CHECK_THAT(refused({"--frames=1e9"}), contains("--frames 1e9: expected a whole number"));
    CHECK_THAT(refused({"--first", "-1"}),
               contains("--first -1: expected a frame number from 0 to 1000000000000"));
    CHECK_THAT(refused({"--first", "x"}), contains("--first x: expected a frame number"));
    CHECK_THAT(refused({"--frames", "10", "--first", "10"}),
               contains("--first 10: there is no such frame, because the run has 10 frames"));
    CHECK_THAT(refused({"--size", "0x720"}),
               contains("--size 0x720: size = [0,720]: expected [width, height], each from 1 to 16384"));
    CHECK_THAT(refused({"--size", "100000x100000"}), contains("each from 1 to 16384"));
    CHECK_THAT(refused({"--size", "640"}), contains("--size 640: expected WIDTHxHEIGHT"));
    CHECK_THAT(refused({"--size", "640x48.5"}), contains("expected WIDTHxHEIGHT"));
    CHECK_THAT(refused({"--size", "99999999999999999999x1"}), contains("expected WIDTHxHEIGHT"));
    CHECK_THAT(refused({"--fps", "fast"}), contains("--fps fast: expected frames per second"));
    CHECK_THAT(
        refused({"--allow-dead-letters", "some"}),
        contains("--allow-dead-letters some: allow_dead_letters = \"some\": expected true, false, or"));
    CHECK_THAT(refused({"--fps", "-1"}), contains("--fps -1: fps = -1"));
    CHECK_THAT(refused({"--device", "gpu0"}), contains("--device gpu0: device = \"gpu0\": expected"));
    CHECK_THAT(refused({"--set", "frames"}), contains("--set frames: expected KEY=VALUE"));
    CHECK_THAT(refused({"--set", "=3"}), contains("expected KEY=VALUE"));
    CHECK_THAT(refused({"--set", "c.x=3"}), contains("--set c.x=3: no stage \"c\""));
    CHECK_THAT(refused({"--name", "a/b"}), contains("--name a/b: name = \"a/b\": expected a name"));
    CHECK_THAT(refused({"--out", "x.png"}), contains("no stage of " + file + " runs carousel-display"));
    CHECK(runs == 0);
}

TEST_CASE("an address reachable by others needs --insecure in each command that reads hosts") {
    CAROUSEL_NEEDS_EXTRAS();
    const world w;
    w.program("alone", R"(cat > /dev/null; echo '{"format":null,"slot_bytes":0,"commits_on_host":true}')");
    const std::string file = runnable(w, R"([[stage]]
name = "a"
run = "./source"
[[stage]]
name = "b"
run = "./alone"
inputs = ["a"]
host = "x"
[hosts.x]
address = "203.0.113.7"
launcher = "none"
)");
    const std::vector<std::vector<std::string>> commands = {
        {"run", file}, {"up", file}, {"validate", file}, {"host", "--file", file, "--as", "x", "--dry-run"}};
    for (std::vector<std::string> words : commands) {
        INFO(words.front());
        runs = 0;
        const command_result without = carousel::test::carousel(words);
        CHECK(without.code == 2);
        CHECK_THAT(without.err, contains("address = \"203.0.113.7\": expected a private address") &&
                                    contains("or set insecure = true (for all hosts: --insecure)"));
        CHECK(runs == 0);
        words.emplace_back("--insecure");
        const command_result with = carousel::test::carousel(words);
        CHECK_THAT(with.err, !contains("address"));
        if (words.front() != "run" && words.front() != "up") continue;  // they ask the programs of the link
        INFO(with.err);
        REQUIRE(runs == 1);
        CHECK(last_pipeline.find("a-to-x")->settings["insecure"] == true);
    }
    const command_result refused =
        carousel::test::carousel({"run", w.write("here.toml", two_stages), "--insecure"});
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, contains("--insecure: ") && contains("has no section [hosts.NAME]"));
}

TEST_CASE("values of --set are written as in a file, quotes may be left out") {
    using supervisor::value_from;
    CHECK(value_from("1000") == 1000);
    CHECK(value_from("1_000") == 1000);
    CHECK(value_from("2.5") == 2.5);
    CHECK(value_from("true") == true);
    CHECK(value_from("[640, 480]") == json({640, 480}));
    CHECK(value_from("\"x y\"") == "x y");
    CHECK(value_from("torus-knots") == "torus-knots");
    CHECK(value_from("models/a.obj") == "models/a.obj");
    CHECK(value_from("") == "");
    CHECK(value_from("1\n[pipeline]\nname = 'x'") == "1\n[pipeline]\nname = 'x'");
    CHECK(value_from("2024-05-01") == "2024-05-01");
    CHECK(value_from("{a = 1}") == json({{"a", 1}}));
}

TEST_CASE("relative files of the command line are relative to the user's working directory") {
    const world w;
    const std::string file = runnable(
        w, two_stages + "[[stage]]\nname = \"show\"\nrun = \"./carousel-display\"\ninputs = [\"a\"]\n");
    REQUIRE(carousel::test::carousel({"run", file, "--mesh", "bunny.obj", "--out", "x/f_%d.png"}).code == 0);
    const std::string here = std::filesystem::current_path().string();
    CHECK(last_pipeline.find("a")->settings.at("mesh") == here + "/bunny.obj");
    CHECK(last_pipeline.find("show")->settings.at("out") == here + "/x/f_%d.png");
}

TEST_CASE("validate and a dry run check everything and start nothing") {
    const world w;
    const std::string file = runnable(w);
    runs = 0;
    const command_result text = carousel::test::carousel({"validate", file});
    CHECK(text.code == 0);
    CHECK_THAT(text.out, contains("2 stages") && contains("512 B") && contains(w.path("source")));
    for (const char* command : {"run", "up"}) {
        const command_result plan =
            carousel::test::carousel({command, file, "--dry-run", "--device", "cpu", "--frames", "7", "-d"});
        INFO(plan.err);
        CHECK(plan.code == 0);
        CHECK_THAT(plan.out, contains("a on cpu, b on cpu") && contains("ring a") &&
                                 contains("b (blocking)") && contains("memfd (host)") &&
                                 contains("asset mesh") && contains("64 B") &&
                                 contains("ends after 7 frames"));
    }
    for (const char* command : {"run", "validate"}) {  // in theory, for any length of a path or a format
        std::vector<std::string> words{command, file};
        if (*command == 'r') words.insert(words.end(), {"--dry-run", "--device", "cpu"});
        std::istringstream lines(carousel::test::carousel(words).out);
        for (std::string line; std::getline(lines, line);) CHECK(supervisor::width_of(line) <= 110);
    }
    const command_result as_json = carousel::test::carousel({"validate", file, "--json"});
    const json j = json::parse(as_json.out);
    CHECK(j.at("ok") == true);
    CHECK(j.at("pipeline").at("size") == json({1280, 720}));
    CHECK(j.at("pipeline").at("isolation") == "process");
    for (const std::string& key : supervisor::stage_keys()) CHECK(j.at("stages").at(0).contains(key));
    CHECK(j.at("stages").at(0).at("link").at("memory") == "vmm");
    CHECK(j.at("stages").at(0).at("link").at("window") == "auto");
    CHECK(j.at("stages").at(1).at("commits_on_host") == true);
    const command_result bad = carousel::test::carousel({"validate", file, "--json", "--size", "0x0"});
    CHECK(bad.code == 2);
    CHECK(bad.err.empty());
    CHECK(json::parse(bad.out).at("code") == 2);
    CHECK(runs == 0);
}

TEST_CASE("colours are printed only on terminals whose user has not disabled them") {
    const variable none("NO_COLOR", "");
    CHECK(supervisor::wants_color(true, false));
    CHECK_FALSE(supervisor::wants_color(false, false));
    CHECK_FALSE(supervisor::wants_color(true, true));
    const variable never("NO_COLOR", "1");
    CHECK_FALSE(supervisor::wants_color(true, false));
}
