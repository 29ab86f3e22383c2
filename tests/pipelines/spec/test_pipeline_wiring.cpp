// Checks that involve more than one section: names, links, cycles, groups, limits.

#include <fmt/format.h>

#include "ring/topology.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"

using namespace carousel;
using namespace carousel::test;

TEST_CASE("stages are put in the links' order, else in the file's") {
    const auto p = supervisor::parse_pipeline(stage("sink", "\"b\", \"a\"") + stage("b", "\"source\"") +
                                                  stage("a", "\"source\"") + stage("source", ""),
                                              "p.toml");
    std::vector<std::string> names;
    for (const auto& s : p.stages) names.push_back(s.name);
    CHECK(names == std::vector<std::string>{"source", "b", "a", "sink"});
    CHECK(p.stages[3].input_indices == std::vector<u32>{1, 2});
    CHECK(p.links.size() == 3);
    CHECK(p.stages[0].has_output);
    CHECK_FALSE(p.stages[3].has_output);
}

TEST_CASE("inputs that name no output are refused at their line") {
    CHECK_THAT(refusal(stage("geometry", "") + stage("b", "\"geometri\"")),
               contains("p.toml:9:1: stage \"b\" reads \"geometri\", which is not a stage; the stages are "
                        "geometry, b; did you mean "
                        "\"geometry\"?"));
    CHECK_THAT(refusal(stage("a", "\"a\"")), contains("p.toml:4:1: stage \"a\" names itself as its input"));
    CHECK_THAT(refusal(stage("a", "") + stage("b", "\"a\", \"a\"")),
               contains("p.toml:9:1: stage \"b\" names \"a\" as its input twice"));
    CHECK_THAT(refusal(stage("a", "") + stage("a", "\"a\"")),
               contains("p.toml:7:1: there is already a stage \"a\" (at p.toml:2:1)"));
    std::string many;
    for (int k = 0; k < 5; ++k) many += stage(fmt::format("s{}", k), "");
    CHECK_THAT(refusal(many + stage("b", "\"s0\",\"s1\",\"s2\",\"s3\",\"s4\"")),
               contains("stage \"b\" has 5 inputs; at most 4"));
}

TEST_CASE("a cycle is refused and named in the direction of the frames") {
    CHECK_THAT(
        refusal(stage("a", "\"c\"") + stage("b", "\"a\"") + stage("c", "\"b\"")),
        contains("p.toml:4:1: the stages' inputs form a cycle: a -> b -> c -> a; frames can only flow"));
    // The stages upstream and downstream of a cycle are not part of it.
    const std::string message = refusal(stage("source", "") + stage("tail", "\"y\"") +
                                        stage("x", "\"source\", \"y\"") + stage("y", "\"x\""));
    CHECK_THAT(message, contains("x -> y -> x") || contains("y -> x -> y"));
    CHECK_THAT(message, !contains("tail ->") && !contains("source ->"));
}

TEST_CASE("a stage that is not part of any flow is refused") {
    CHECK_THAT(refusal(stage("a", "")), contains("stage \"a\" neither reads a stage nor is read by one"));
    CHECK_THAT(refusal(stage("a", "") + stage("b", "\"a\"") + stage("lone", "")),
               contains("p.toml:11:1: stage \"lone\" neither reads"));
}

TEST_CASE("every N is for stages that read in order and have no outputs, and reaches the ring") {
    const std::string head = stage("a", "");
    CHECK_THAT(
        refusal(head + stage("b", "\"a\"", "every = 3") + stage("c", "\"b\"")),
        contains("p.toml:10:1: stage \"b\": every = 3 is for stages with inputs, without outputs, and with"));
    CHECK_THAT(refusal(stage("a", "", "every = 3") + stage("b", "\"a\"")), contains("every = 3 is for"));
    CHECK_THAT(refusal(head + stage("all", "\"a\"") + stage("b", "\"a\"", "every = 3\ngroup = \"latest\"")),
               contains("every = 3 is for"));
    CHECK_THAT(refusal(head + stage("b", "\"a\"", "every = 0")), contains("every"));
    const auto p = supervisor::parse_pipeline(head + stage("b", "\"a\"", "every = 3"), "p.toml");
    CHECK(supervisor::stage_plan_of(p.stages[1], {}).every == 3);
}

TEST_CASE("a ring's own latest_lease_ms reaches the ring, and other rings have the pipeline's") {
    const std::string text = stage("a", "") + stage("b", "\"a\"") + stage("c", "\"b\"");
    const auto p = supervisor::parse_pipeline(text + "[link.b]\nlatest_lease_ms = 700\n", "p.toml");
    CHECK(supervisor::stage_plan_of(p.stages[0], p.links.at("a")).latest_lease_ns == 0);
    CHECK(supervisor::stage_plan_of(p.stages[1], p.links.at("b")).latest_lease_ns == 700'000'000);
    CHECK_THAT(refusal(text + "[link.b]\nlatest_lease_ms = 0\n"), contains("latest_lease_ms = 0: expected"));
}

TEST_CASE("a lease that is not shorter than the time after which a stalled run is rebuilt is refused") {
    const std::string stages = stage("a", "") + stage("b", "\"a\"") + stage("c", "\"b\"");
    const auto link = [&](u32 ms) { return fmt::format("[link.b]\nlatest_lease_ms = {}\n", ms); };
    (void)supervisor::parse_pipeline(stages + link(4999), "p.toml");
    CHECK_THAT(
        refusal(stages + link(5000)),
        contains(": the ring \"b\" has latest_lease_ms = 5000, and [pipeline] has stall_timeout_ms = 5000"));
    const auto of_pipeline = [](const char* keys) { return fmt::format("[pipeline]\n{}\n", keys); };
    CHECK_THAT(refusal(of_pipeline("latest_lease_ms = 6000") + stages),
               contains("p.toml:2:1: the ring \"a\" has latest_lease_ms = 6000"));
    CHECK_THAT(refusal(of_pipeline("stall_timeout_ms = 250") + stages),
               contains("p.toml:2:1: the ring \"a\" has latest_lease_ms = 250"));
    CHECK_THAT(refusal(of_pipeline("latest_lease_ms = 6000") + stages + link(100)),
               contains("the ring \"a\""));
    (void)supervisor::parse_pipeline(of_pipeline("latest_lease_ms = 3600000\nstall_timeout_ms = 0") + stages,
                                     "p.toml");
}

TEST_CASE("latest and optional are for stages without outputs") {
    const std::string head = stage("a", "");
    CHECK_THAT(refusal(head + stage("b", "\"a\"", "group = \"latest\"") + stage("c", "\"b\"")),
               contains("p.toml:10:1: stage \"b\" is read by others; only stages without outputs may have "
                        "group = \"latest\""));
    CHECK_THAT(
        refusal(head + stage("b", "\"a\"", "optional = true") + stage("c", "\"b\"")),
        contains(
            "p.toml:10:1: stage \"b\" is read by others; optional = true is for stages without outputs"));
    CHECK_THAT(refusal(head + stage("b", "\"a\"", "group = \"latest\"\ninstances = 2") + stage("c", "\"a\"")),
               contains("stage \"b\" has instances = 2; a latest reader can have only one process"));
    CHECK_THAT(refusal(head + stage("x", "") + stage("b", "\"a\", \"x\"", "group = \"latest\"") +
                       stage("c", "\"a\", \"x\"")),
               contains("stage \"b\" has 2 inputs; a latest reader can have only one"));
    CHECK_THAT(refusal(stage("a", "", "group = \"latest\"") + stage("b", "\"a\"")),
               contains("stage \"a\" reads nothing"));
    CHECK_THAT(refusal(head + stage("b", "\"a\"", "group = \"latest\"")),
               contains("p.toml:1:1: \"a\" is read only by latest readers, which may skip frames; at least "
                        "one reader must be blocking"));
    CHECK(refusal(head + stage("b", "\"a\"", "group = \"latest\"") + stage("c", "\"a\"", "optional = true"))
              .empty());
}

TEST_CASE("the control block's limits are reported with a place") {
    std::string readers = stage("a", "");
    for (int k = 0; k < 9; ++k) readers += stage(fmt::format("r{}", k), "\"a\"");
    CHECK_THAT(
        refusal(readers),
        contains("p.toml:1:1: stage \"a\" is read by 9 blocking and 0 latest stages; at most 8 and 8"));
    std::string many = stage("s0", "");
    for (int k = 1; k < 33; ++k) many += stage(fmt::format("s{}", k), fmt::format("\"s{}\"", k - 1));
    CHECK_THAT(refusal(many), contains("33 stages; at most 32"));
    std::string seats = stage("s0", "", "instances = 16");
    for (int k = 1; k < 5; ++k)
        seats += stage(fmt::format("s{}", k), fmt::format("\"s{}\"", k - 1), "in_flight = 1\ninstances = 16");
    CHECK_THAT(refusal(seats), contains("80 instances in all stages up to this one; at most 64"));
    std::string jobs =
        stage("s0", "", "instances = 16\nin_flight = 16") + stage("s1", "\"s0\"", "in_flight = 16");
    CHECK_THAT(
        refusal(jobs),
        contains("p.toml:11:1: in_flight x instances is 272 in all stages up to this one; at most 256"));
    std::string sources;
    for (int k = 0; k < 9; ++k)
        sources += stage(fmt::format("s{}", k), "") + stage(fmt::format("t{}", k), fmt::format("\"s{}\"", k));
    CHECK_THAT(refusal(sources), contains("9 sources; at most 8"));
}

TEST_CASE("a link is named after the stage that writes it") {
    CHECK_THAT(refusal(chain + "[link.geometrie]\nwindow = 9\n"),
               contains("p.toml:13:1: [link.geometrie]: no stage \"geometrie\"") &&
                   contains("did you mean \"geometry\"?"));
    CHECK_THAT(refusal(chain + "[link.display]\nwindow = 9\n"),
               contains("p.toml:13:1: [link.display]: stage \"display\" has no output ring"));
}

TEST_CASE("a ring that needs too many buffers is refused where its size is set") {
    CHECK_THAT(refusal(stage("a", "", "in_flight = 16") + stage("b", "\"a\"") + "[link.a]\nwindow = 48\n"),
               contains("p.toml:12:1: the output ring of \"a\" needs a window of 48 frames and") &&
                   contains("lower in_flight, instances or window"));
    CHECK_THAT(refusal(stage("a", "", "in_flight = 16\ninstances = 4") + stage("b", "\"a\"")),
               contains("p.toml:5:1: the output ring of \"a\""));
    CHECK_THAT(
        refusal(stage("a", "") + stage("b", "\"a\"", "in_flight = 16") + "[link.b.state]\nwindow = 48\n"),
        contains("p.toml:12:1: the ring \"b.state\" needs"));
}

TEST_CASE("record = true adds one stage that reads these rings, and reports the place of an error") {
    const std::string rings = stage("a", "") + stage("b", "\"a\"") + stage("c", "\"b\"");
    const auto p = supervisor::parse_pipeline(
        "[pipeline]\nrecord_to = \"x.mcap\"\n" + rings + "[link.b]\nrecord = true\n[link.a]\nrecord = true\n",
        "p.toml");
    REQUIRE(p.stages.size() == 4);
    const supervisor::stage_spec* s = p.find("record");
    REQUIRE(s != nullptr);
    CHECK(s->run == "carousel-record");
    CHECK(s->inputs == std::vector<std::string>{"a", "b"});
    CHECK(s->group == supervisor::group_kind::blocking);
    CHECK(s->settings.dump() == R"({"out":"x.mcap"})");
    CHECK(s->position_of("out").text() == "p.toml:2:1");
    CHECK(supervisor::parse_pipeline(rings + "[link.a]\nrecord = false\n", "p.toml").stages.size() == 3);
    CHECK(supervisor::parse_pipeline(rings + "[link.a]\nrecord = true\n", "dir/p.toml")
              .find("record")
              ->settings.at("out") == "p.mcap");
    CHECK_THAT(refusal(rings + "[link.a]\nrecord = 1\n"), contains("record = 1"));
    CHECK_THAT(refusal(rings + "[link.d]\nrecord = true\n"), contains("reads \"d\", which is not a stage"));
    CHECK_THAT(refusal(stage("record", "") + stage("b", "\"record\"") + "[link.record]\nrecord = true\n"),
               contains("stage \"record\" has the name of the stage that record = true adds"));
}
