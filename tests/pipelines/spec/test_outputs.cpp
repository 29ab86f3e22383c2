// Stages with several outputs in a pipeline file. Stage programs are shell scripts with fixed answers.
#include <fmt/format.h>

#include "core/io.hpp"
#include "core/json.hpp"
#include "graph/drawing.hpp"
#include "spec/describe.hpp"
#include "spec/links.hpp"
#include "supervisor/plan/plan_text.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"
#include "tests/pipelines/spec/world.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;

namespace {

const std::string fork_body =
    R"(cat > /dev/null; echo '{"format":{"type":"n","planes":[]},"slot_bytes":512,"output":"number",)"
    R"("more_outputs":[{"output":"square","format":{"type":"s","planes":[]},"slot_bytes":1024}]}')";
const std::string nothing_body = R"(cat > /dev/null; echo '{"format":null}')";

std::string fork_text(const std::string& sink_inputs, const std::string& more = "") {
    return "[[stage]]\nname = \"fork\"\nrun = \"./fork\"\n[[stage]]\nname = \"sink\"\nrun = \"./sink\"\n"
           "inputs = [" +
           sink_inputs + "]\n" + more;
}

struct forked_world : world {
    forked_world() {
        program("fork", fork_body);
        program("sink", nothing_body);
    }
    [[nodiscard]] pipeline read(const std::string& text) const {
        return read_pipeline(write("p.toml", text));
    }
    [[nodiscard]] std::string refusal_of(const std::string& text) const {
        try {
            (void)describe_stages(read(text));
            return "";
        } catch (const config_error& e) {
            return e.what();
        }
    }
};

run_setup setup_of(const pipeline& p) {
    run_options o;
    o.stages = describe_stages(p);
    return setup_from(p, o, {});
}

}  // namespace

TEST_CASE("a stage's outputs are read by name, the first also by only the stage's name") {
    const forked_world w;
    w.program("sink", "cat > " + w.path("heard") + R"(; echo '{"format":null}')");
    const pipeline p = w.read(fork_text("\"fork\", \"fork.square\""));
    CHECK(p.stages[1].input_indices == std::vector<u32>{0, 0});
    const auto all = describe_stages(p);
    REQUIRE(all[0].outputs() == 2);
    CHECK(all[0].ring(0).output == "number");
    CHECK(all[0].ring(1).slot_bytes == 1024);
    CHECK(all[1].input_outputs == std::vector<u32>{0, 1});
    const nlohmann::json query = nlohmann::json::parse(read_file(w.path("heard")).value_or(""));
    CHECK(query["inputs"][0]["stage"] == "fork");
    CHECK(query["inputs"][1]["stage"] == "fork.square");
    CHECK(query["inputs"][1]["format"]["type"] == "s");
    CHECK(describe_stages(w.read(fork_text("\"fork.square\", \"fork.number\"")))[1].input_outputs ==
          std::vector<u32>{1, 0});
}

TEST_CASE("outputs that aren't there, are read twice or not at all are refused with a place") {
    const forked_world w;
    CHECK_THAT(w.refusal_of(fork_text("\"fork\", \"fork.sqare\"")),
               contains(":7:1: stage \"sink\" reads \"fork.sqare\", but stage \"fork\" has no output "
                        "\"sqare\"; its outputs: number, square; did you mean \"square\"?"));
    CHECK_THAT(w.refusal_of(fork_text("\"fork\", \"fork.number\", \"fork.square\"")),
               contains("names an input twice, because \"fork.number\" is the first output of \"fork\""));
    CHECK_THAT(w.refusal_of(fork_text("\"fork.square\", \"fork.square\"")),
               contains("stage \"sink\" names \"fork.square\" as its input twice"));
    CHECK_THAT(w.refusal_of(fork_text("\"fork\"")),
               contains(":1:1: stage \"fork\" produces \"square\" (s), which no stage reads; add "
                        "\"fork.square\" to the inputs of a sink, or remove the output"));
    CHECK_THAT(w.refusal_of(fork_text("\"fork.square\"")),
               contains("stage \"fork\" produces \"number\" (n), which no stage reads; add \"fork\" to"));
    CHECK_THAT(w.refusal_of(fork_text("\"fork.\"")),
               contains("stage \"sink\" reads \"fork.\"; expected STAGE or STAGE.OUTPUT"));
    CHECK_THAT(w.refusal_of(fork_text("\"frok.square\"")),
               contains("stage \"sink\" reads \"frok\", which is not a stage") &&
                   contains("did you mean \"fork\"?"));
    const std::string newest =
        "[[stage]]\nname = \"newest\"\nrun = \"./sink\"\ngroup = \"latest\"\n"
        "inputs = [\"fork.square\"]\n";
    CHECK_THAT(
        w.refusal_of(fork_text("\"fork\"", newest)),
        contains("\"fork.square\" is read only by latest readers, which may skip frames; at least one"));
    CHECK(w.refusal_of(fork_text("\"fork\", \"fork.square\"", newest)).empty());
    w.program("fork",
              R"(cat > /dev/null; echo '{"format":{"type":"n"},"slot_bytes":512,"more_outputs":[)"
              R"({"output":"a","format":{},"slot_bytes":1},{"output":"b","format":{},"slot_bytes":1},)"
              R"({"output":"c","format":{},"slot_bytes":1},{"output":"d","format":{},"slot_bytes":1}]}')");
    CHECK_THAT(w.refusal_of(fork_text("\"fork\"")), contains("stage \"fork\" has 5 outputs; at most 4"));
}

TEST_CASE("the ring of an output has its own section") {
    const forked_world w;
    const std::string both = "\"fork\", \"fork.square\"";
    const run_setup s = setup_of(w.read(
        fork_text(both, "[link.fork]\nwindow = 9\n[link.fork.square]\nwindow = 5\nguard = \"off\"\n")));
    CHECK(s.stages[0].window == 9);
    CHECK(s.stages[0].ring(1).window == 5);
    CHECK(s.stages[0].ring(1).link.guard == guard_request::off);
    CHECK(s.stages[0].link.guard == guard_request::automatic);
    const run_setup alone = setup_of(w.read(fork_text(both, "[link.fork.square]\nwindow = 5\n")));
    CHECK(alone.stages[0].ring(1).link.window == 5U);
    CHECK_FALSE(alone.stages[0].link.window);
    CHECK_THAT(w.refusal_of(fork_text(both, "[link.fork.cube]\nwindow = 5\n")),
               contains(":8:1: [link.fork.cube]: stage \"fork\" has no output \"cube\"; its outputs: number, "
                        "square"));
    CHECK_THAT(
        w.refusal_of(fork_text(both, "[link.fork.number]\nwindow = 5\n")),
        contains(
            "[link.fork.number]: \"number\" is the first output of \"fork\", so the section of its ring is "
            "[link.fork]"));
    CHECK_THAT(w.refusal_of(fork_text(both, "[link.frok.square]\nwindow = 5\n")),
               contains("[link.frok.square]: no stage \"frok\"") && contains("did you mean \"fork\"?"));
}

TEST_CASE("the plan of a fork has a ring, memory and a line for each output") {
    const forked_world w;
    const run_setup s = setup_of(w.read(fork_text("\"fork\", \"fork.square\"")));
    const std::vector<ring_place> rings = s.rings();
    REQUIRE(rings.size() == 2);
    CHECK(s.stages[0].ring_name(rings[1].output) == "fork.square");
    CHECK(s.stages[1].reads(0, 0));
    CHECK(s.stages[1].reads(0, 1));
    const ring::plan plan = plan_of(s);
    REQUIRE(plan.stages[0].more.size() == 1);
    CHECK(plan.stages[0].more[0].name == "fork.square");
    CHECK(plan.stages[1].input_outputs == std::vector<u32>{0, 1});
    const auto links = links_of(s);
    REQUIRE(links.size() == 2);
    CHECK(links[0].output == "number");
    CHECK(links[1].stage == "fork.square");
    CHECK(links[1].output == "square");
    CHECK(links[1].slot_bytes == 1024);
    CHECK(links[1].readers.at(0).stage == "sink");
    const drawing d = drawing_of(s);
    REQUIRE(d.edges.size() == 2);
    CHECK(d.edges[1].lines[0] == "fork.square: s");
    CHECK(d.edges[0].lines[0] == "n");
    CHECK_THAT(placement_text(s, 200), contains("ring fork ") && contains("ring fork.square"));
}

TEST_CASE("an output after the first is not read over a link between hosts") {
    const forked_world w;
    const std::string hosts =
        "[hosts.here]\nlauncher = \"here\"\naddress = \"10.0.0.1\"\n"
        "[hosts.b]\naddress = \"10.0.0.2\"\n";
    CHECK_THAT(
        w.refusal_of("[[stage]]\nname = \"fork\"\nrun = \"./fork\"\n[[stage]]\nname = \"sink\"\n"
                     "run = \"./sink\"\nhost = \"b\"\ninputs = [\"fork\", \"fork.square\"]\n" +
                     hosts),
        contains("stage \"sink\" reads \"fork.square\" on another host: a link between hosts carries only "
                 "the first output of a stage, \"fork\""));
}

TEST_CASE("a port has one output, and several are refused with the reason") {
    const forked_world w;
    const std::string port = "[[stage]]\nname = \"camera\"\nrun = \"port\"\n";
    const auto read_by = [](const std::string& ring) {
        return "[[stage]]\nname = \"sink\"\nrun = \"./sink\"\ninputs = [\"" + ring + "\"]\n";
    };
    CHECK_THAT(
        w.refusal_of(port + "outputs = { color = \"u8[4]\", depth = \"f32[4]\" }\n" + read_by("camera")),
        contains("port \"camera\": outputs: a port can have only one output, whose planes may be any"));
    CHECK_THAT(
        w.refusal_of(port + "output = { color = \"u8[4]\" }\n" + read_by("camera.depth")),
        contains("stage \"sink\" reads \"camera.depth\", but stage \"camera\" has no output \"depth\""));
}
