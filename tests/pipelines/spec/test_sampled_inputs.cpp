// Sampled inputs, the key `sampled`, in a pipeline file. Stage programs are shell scripts with fixed answers.
#include <fmt/format.h>

#include "core/io.hpp"
#include "core/json.hpp"
#include "graph/drawing.hpp"
#include "spec/describe.hpp"
#include "spec/links.hpp"
#include "supervisor/plan/compatibility.hpp"
#include "supervisor/plan/plan_text.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"
#include "tests/pipelines/spec/world.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;

namespace {

std::string stage_text(const std::string& name, const std::string& run, const std::string& inputs,
                       const std::string& more = "") {
    return fmt::format("[[stage]]\nname = \"{}\"\nrun = \"./{}\"\n{}{}", name, run,
                       inputs.empty() ? "" : "inputs = [" + inputs + "]\n", more);
}

/// source -> middle -> sink, and also pose -> poses; `middle` are more keys of middle, `source` of source.
std::string sampled_text(const std::string& middle, const std::string& source = "",
                         const std::string& more = "") {
    return stage_text("source", "maker", "", source) + stage_text("middle", "maker", "\"source\"", middle) +
           stage_text("sink", "sink", "\"middle\"") + stage_text("pose", "pose", "") +
           stage_text("poses", "sink", "\"pose\", \"pose.cloud\"") + more;
}

struct sampled_world : world {
    sampled_world() {
        program(
            "maker",
            R"(cat >> )" + path("heard") +
                R"(; echo '{"format":{"type":"n","planes":[]},"slot_bytes":512,"accepts_sampled_inputs":true}')");
        program("pose",
                R"(cat > /dev/null; echo '{"format":{"type":"p","planes":[]},"slot_bytes":256,)"
                R"("output":"pose","more_outputs":[{"output":"cloud","format":{"type":"c","planes":[]},)"
                R"("slot_bytes":1024}]}')");
        program("sink", R"(cat > /dev/null; echo '{"format":null}')");
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
    [[nodiscard]] run_setup setup_of(const std::string& text) const {
        const pipeline p = read(text);
        run_options o;
        o.stages = describe_stages(p);
        return setup_from(p, o, {});
    }
    /// The request that the last stage that runs `maker` received.
    [[nodiscard]] nlohmann::json last_query() const {
        const std::string all = read_file(path("heard")).value_or("");
        const std::size_t end = all.find_last_not_of('\n');
        const std::size_t begin = all.rfind('\n', end);
        return nlohmann::json::parse(all.substr(begin == std::string::npos ? 0 : begin + 1));
    }
};

}  // namespace

TEST_CASE("a stage's sampled inputs are produced first, and it gets their formats by name") {
    const sampled_world w;
    const pipeline p = w.read(sampled_text("sampled = [\"pose.cloud\", \"pose\"]\n"));
    std::vector<std::string> order;
    for (const stage_spec& s : p.stages) order.push_back(s.name);
    CHECK(order == std::vector<std::string>{"source", "pose", "middle", "sink", "poses"});
    const auto all = describe_stages(p);
    CHECK(all[2].sampled_outputs == std::vector<u32>{1, 0});
    const nlohmann::json query = w.last_query();
    REQUIRE(query["sampled"].size() == 2);
    CHECK(query["sampled"][0]["stage"] == "pose.cloud");
    CHECK(query["sampled"][0]["format"]["type"] == "c");
    CHECK(query["sampled"][1]["format"]["type"] == "p");
}

TEST_CASE("a source may sample results of its own frames, without their format") {
    const sampled_world w;
    const pipeline p = w.read(sampled_text("", "sampled = [\"middle\"]\n"));
    const auto source = static_cast<std::size_t>(p.find("source") - p.stages.data());
    CHECK(p.stages[p.stages[source].sampled_indices.at(0)].name == "middle");
    CHECK(source < p.stages[source].sampled_indices[0]);
    const auto all = describe_stages(p);
    CHECK(all[source].sampled_outputs == std::vector<u32>{0});
    const std::string first = read_file(w.path("heard")).value_or("");
    const nlohmann::json query = nlohmann::json::parse(first.substr(0, first.find('\n')));
    CHECK(query["sampled"][0]["format"].is_null());
}

TEST_CASE("sampled inputs that can't be are refused with a place and a guess") {
    const sampled_world w;
    CHECK_THAT(w.refusal_of(sampled_text("sampled = [\"poze\"]\n")),
               contains(":8:1: stage \"middle\" samples \"poze\", which is not a stage; the stages are") &&
                   contains("did you mean \"pose\"?"));
    CHECK_THAT(
        w.refusal_of(sampled_text("sampled = [\"pose.clout\"]\n")),
        contains("stage \"middle\" samples \"pose.clout\", but stage \"pose\" has no output \"clout\"; its "
                 "outputs: pose, cloud; did you mean \"cloud\"?"));
    CHECK_THAT(w.refusal_of(sampled_text("sampled = [\"pose.\"]\n")),
               contains("expected STAGE or STAGE.OUTPUT"));
    CHECK_THAT(w.refusal_of(sampled_text("sampled = [\"middle\"]\n")),
               contains("stage \"middle\" names itself as its sampled input"));
    CHECK_THAT(w.refusal_of(sampled_text("sampled = [\"pose\", \"pose.pose\"]\n")),
               contains("stage \"middle\" names \"pose.pose\" as its sampled input twice"));
    CHECK_THAT(w.refusal_of(sampled_text("sampled = [\"sink\"]\n")),
               contains(":8:1: \"sink\" is only a sampled input; a stage must also read it"));
    CHECK_THAT(w.refusal_of(sampled_text("sampled = \"pose\"\n")),
               contains("sampled") && contains("expected"));
    CHECK_THAT(w.refusal_of(sampled_text("sampled = [\"a\", \"b\", \"c\", \"d\", \"e\"]\n")),
               contains("stage \"middle\" has 5 sampled inputs; at most 4"));
    w.program("maker", R"(cat > /dev/null; echo '{"format":{"type":"n","planes":[]},"slot_bytes":512}')");
    CHECK_THAT(
        w.refusal_of(sampled_text("sampled = [\"pose\"]\n")),
        contains(":8:1: stage \"middle\" accepts no sampled inputs: its program does not declare them"));
}

TEST_CASE("a sampling stage is not a reader that a ring waits for, and there are eight places") {
    const sampled_world w;
    const std::string alone = stage_text("source", "maker", "") +
                              stage_text("middle", "maker", "\"source\"", "sampled = [\"lamp\"]\n") +
                              stage_text("sink", "sink", "\"middle\"") + stage_text("lamp", "maker", "");
    CHECK_THAT(w.refusal_of(alone),
               contains(":8:1: \"lamp\" is only a sampled input; a stage must also read it"));
    CHECK(w.refusal_of(sampled_text("sampled = [\"pose\"]\ninstances = 8\n")).empty());
    CHECK_THAT(w.refusal_of(sampled_text("sampled = [\"pose\"]\ninstances = 9\n")),
               contains("\"pose\" is read by 1 blocking and 9 latest stages"));
    CHECK_THAT(w.refusal_of(sampled_text("sampled = [\"pose\"]\ninstances = 8\n", "",
                                         stage_text("view", "sink", "\"pose\"", "group = \"latest\"\n"))),
               contains("1 blocking and 9 latest stages"));
    CHECK_THAT(
        w.refusal_of(sampled_text(
            "", "", stage_text("view", "sink", "\"pose\"", "group = \"latest\"\nsampled = [\"middle\"]\n"))),
        contains("stage \"view\" reads with group = \"latest\" and has sampled inputs"));
    CHECK_THAT(w.refusal_of(sampled_text("", "",
                                         "[[stage]]\nname = \"way\"\nrun = \"port\"\ninputs = [\"pose\"]\n"
                                         "sampled = [\"middle\"]\n")),
               contains("port \"way\": sampled is only for stages whose programs the run starts"));
    CHECK_THAT(w.refusal_of(sampled_text("sampled = [\"pose\"]\nhost = \"b\"\n", "",
                                         "[hosts.here]\nlauncher = \"here\"\naddress = \"10.0.0.1\"\n"
                                         "[hosts.b]\naddress = \"10.0.0.2\"\n")),
               contains("stage \"middle\" samples \"pose\" on another host"));
}

TEST_CASE("a plan lists the samplers of a ring and that such a run's hashes are not comparable") {
    const sampled_world w;
    const run_setup s = w.setup_of(sampled_text("sampled = [\"pose.cloud\"]\n"));
    CHECK_FALSE(s.stages[2].reads(1, 1));
    CHECK(s.stages[2].samples(1, 1));
    CHECK_FALSE(s.stages[2].samples(1, 0));
    CHECK(s.why_not_comparable() == "stage middle takes the newest frame of pose.cloud");
    CHECK(w.setup_of(sampled_text("")).why_not_comparable().empty());
    const ring::plan plan = plan_of(s);
    CHECK(plan.stages[2].sampled_inputs == std::vector<u32>{1});
    CHECK(plan.stages[2].sampled_outputs == std::vector<u32>{1});
    u32 dashed = 0;
    for (const graph_edge& e : drawing_of(s).edges)
        if (e.latest) {
            ++dashed;
            CHECK(e.ring == "pose.cloud");
        }
    CHECK(dashed == 1);
    CHECK_THAT(placement_text(s, 200), contains("poses (blocking), middle (latest)"));
    const pipeline p = w.read(sampled_text("sampled = [\"pose.cloud\"]\n"));
    CHECK_THAT(plan_text(p, describe_stages(p), 200), contains("source, pose.cloud (latest)"));
    const auto of = [&](const std::string& middle) { return identity_of(w.setup_of(sampled_text(middle))); };
    CHECK_THAT(difference(of("sampled = [\"pose.cloud\"]\n"), of("sampled = [\"pose\"]\n")),
               contains("sampled"));
}
