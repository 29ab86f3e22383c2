// The answers of a supervisor, written and read: verdicts, ps, traces, parameters.

#include "control/mapped_ring.hpp"
#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "control/trace_message.hpp"
#include "core/errors.hpp"
#include "shm/control_block.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;
using test::contains;

namespace {

run::ps_answer whole_answer() {
    run::ps_answer a;
    run::ps_pipeline& p = a.pipeline;
    p.name = "demo";
    p.state = "waiting";
    p.state_text = "waiting: fragment is down";
    p.waits_for = {"fragment"};
    p.bottleneck = {{"kind", "stage"}, {"text", "bottleneck: fragment (busy 98 %)"}};
    p.pid = 77;
    p.run_id = "id";
    p.owner_pid = 78;
    p.mps = run::ps_mps{79, 2, true, 1, false, true};
    p.file = "demo.toml";
    p.device = "cuda:0";
    p.uptime_s = 7.5;
    p.frames = u64{1} << 60U;
    p.restarts = p.stalls = p.damaged = 3;
    p.kills_at = {1, 2, 3, 4, 5};
    p.frames_per_second = 60.25;
    run::ps_stage s;
    s.name = "fragment";
    s.instance = 1;
    s.pid = 80;
    s.state = "running";
    s.waits_for = "full disk";
    s.standby = "ready";
    s.standby_pid = 81;
    s.standby_memory_bytes = u64{1} << 41U;
    s.age_s = 3.5;
    s.restarts = 2;
    s.last_exit = "exit 3";
    s.frames_per_second = 30.5;
    s.frames = s.commits = 150;
    s.busy = s.wait_input = s.wait_output = s.wait_own = 0.25;
    s.cpu_percent = 80.5;
    s.memory_bytes = u64{1} << 40U;
    s.end_to_end = {{0.0, 0.5, 7}, {0.5, 1.5, 9}};
    s.device = "cuda:0";
    s.in_flight = 14;
    s.depth_reason = "set in the file";
    s.graphs = true;
    s.reach = "copy";
    s.inputs_guarded = true;
    s.block_guard = "keys";
    a.stages = {s, {}};
    a.problems = {"the disk is full"};
    a.links = {{"fragment",
                "t",
                "memfd",
                15,
                9,
                1024,
                {{"display", "blocking"}, {"film", "latest"}},
                "gap",
                "color"}};
    return a;
}

}  // namespace

TEST_CASE("a verdict is read as it was written and has no unneeded key") {
    CHECK(run::to_json(run::carried_out("done")) == json::parse(R"({"ok":true,"message":"done"})"));
    CHECK(run::to_json(run::refused(2, "no")) == json::parse(R"({"ok":false,"message":"no","code":2})"));
    const run::verdict v = run::read_verdict(run::to_json(run::verdict{false, "wait", 2, true}));
    CHECK_FALSE(v.ok);
    CHECK(v.message == "wait");
    CHECK(v.code == 2);
    CHECK(v.later);
}

TEST_CASE("a verdict that lacks keys, or has others of their names, is a refusal without a reason") {
    for (const char* odd :
         {"{}", R"({"ok":1,"message":7,"code":"2","later":"yes"})", R"({"ok":null})", "[]", "3"}) {
        INFO(odd);
        const run::verdict v = run::read_verdict(json::parse(odd));
        CHECK_FALSE(v.ok);
        CHECK_FALSE(v.message);
        CHECK_FALSE(v.code);
        CHECK_FALSE(v.later);
    }
    CHECK(run::read_verdict(json::parse(R"({"ok":true})")).ok);
}

TEST_CASE("ps's pipeline, stages, links and problems are read as they were written") {
    const json encoded = run::to_json(whole_answer());
    CHECK(run::to_json(run::read_ps(json::parse(encoded.dump()))) == encoded);
    CHECK(encoded["pipeline"]["frames"] == u64{1} << 60U);
    CHECK(encoded["pipeline"]["kills_at"] ==
          json::parse(R"({"idle":1,"open":2,"submitted":3,"committed":4,"aborted":5})"));
    CHECK(encoded["stages"][0]["end_to_end"] == json::parse("[[0.0,0.5,7],[0.5,1.5,9]]"));
    CHECK(encoded["links"][0] ==
          json::parse(
              R"({"stage":"fragment","format":"t","slots":15,"window":9,"slot_bytes":1024,"memory":"memfd",
                                              "guard":"gap","output":"color",
                                              "readers":[{"stage":"display","group":"blocking"},{"stage":"film","group":"latest"}]})"));
    CHECK(run::read_ps(encoded).pipeline.limit() == "bottleneck: fragment (busy 98 %)");
}

TEST_CASE("unknown values of a seat or a run are null in ps, and no key is omitted") {
    run::ps_answer a;
    a.stages.emplace_back();
    const json encoded = run::to_json(a);
    for (const auto& [key, value] : encoded["stages"][0].items()) CHECK(value.is_null());
    CHECK(encoded["stages"][0].size() == 31);
    CHECK(encoded["pipeline"].size() == 22);
    CHECK(encoded["pipeline"]["mps"].is_null());
    CHECK(encoded["pipeline"]["waits_for"] == json::array());
}

TEST_CASE("values that an answer to ps lacks, or has with another type, are unknown") {
    const char* odd_everywhere =
        R"({"pipeline":{"name":1,"pid":"x","mps":[],"bottleneck":"b","kills_at":7},"stages":[4],"links":[5]})";
    for (const char* odd :
         {"{}", "[]", "7", R"({"pipeline":3,"stages":4,"problems":5,"links":6})", odd_everywhere}) {
        INFO(odd);
        const run::ps_answer a = run::read_ps(json::parse(odd));
        CHECK_FALSE(a.pipeline.name);
        CHECK_FALSE(a.pipeline.pid);
        CHECK_FALSE(a.pipeline.mps);
        CHECK(a.pipeline.limit().empty());
        CHECK(a.stages.empty());
        CHECK(a.problems.empty());
        CHECK_FALSE(a.links);
    }
    const run::ps_answer a =
        run::read_ps(json::parse(R"({"stages":[{"name":7,"pid":1e30,"instance":-1,"restarts":4294967296,
        "frames":2.0,"memory_bytes":-5,"age_s":75,"end_to_end":[[0,1],[0,1,"x"],[0,1,2]]}]})"));
    REQUIRE(a.stages.size() == 1);
    const run::ps_stage& s = a.stages.front();
    CHECK_FALSE(s.name);
    CHECK_FALSE(s.pid);
    CHECK_FALSE(s.instance);
    CHECK_FALSE(s.restarts);
    CHECK_FALSE(s.memory_bytes);
    CHECK(s.frames == 2);
    CHECK(s.age_s == 75);
    CHECK_FALSE(s.end_to_end);
}

TEST_CASE("stages with equal work are described once") {
    run::ps_answer a = whole_answer();
    run::ps_stage other = a.stages[0];
    other.instance = 0;
    other.in_flight = 3;
    other.reach = "trying";
    run::ps_stage third;
    third.name = "display";
    third.in_flight = 2;
    third.depth_reason = "from latency in the file";
    a.stages = {a.stages[0], other, third};
    CHECK(run::depth_sentences(a) ==
          std::vector<std::string>{"in flight: fragment 14, fragment 3: set in the file",
                                   "in flight: display 2: from latency in the file",
                                   "graphs: the work of a frame is one launch in fragment, fragment",
                                   "reach: fragment.1: reaches rings on another GPU by a copy",
                                   "reach: fragment.0: is testing both ways to read rings on another GPU"});
    CHECK(run::depth_sentences({}).empty());
}

TEST_CASE("links are reported completely or not at all") {
    const json whole = run::to_json(whole_answer());
    for (const char* key : {"stage", "format", "slots", "slot_bytes", "memory", "readers"}) {
        INFO(key);
        json j = whole;
        j["links"][0].erase(key);
        CHECK_FALSE(run::read_ps(j).links);
        j["links"][0][key] = json::object();
        CHECK_FALSE(run::read_ps(j).links);
    }
}

TEST_CASE("commands know a stage by its name, and each of several instances, too") {
    run::ps_answer a;
    for (const char* name : {"b", "a", "b"}) {
        a.stages.emplace_back();
        a.stages.back().name = name;
    }
    a.stages.emplace_back();  // an odd row
    CHECK(run::names_for_commands(a) == std::vector<std::string>{"a", "b", "b.0", "b.1"});
}

TEST_CASE("a trace answer is read as it was written, and another version's is refused") {
    const run::trace_answer a{"id", 7, "running", {{5, "died", 2, 1, 77, "died: killed"}}, 17, 40};
    const json encoded = run::to_json(a);
    CHECK(encoded ==
          json::parse(R"({"ok":true,"run_id":"id","created_ns":7,"state":"running","next":17,"last":40,
        "notes":[{"time_ns":5,"kind":"died","seat":2,"epoch":1,"pid":77,"text":"died: killed"}]})"));
    CHECK(run::to_json(run::read_trace(encoded)) == encoded);
    CHECK(run::read_trace(json::parse(R"({"run_id":"id","notes":[{}]})")).notes.size() == 1);
    for (const char* odd : {"{}", R"({"run_id":"id"})", R"({"notes":[]})", R"({"run_id":7,"notes":[]})",
                            R"({"run_id":"id","notes":[7]})", R"({"run_id":"id","notes":[],"next":"x"})",
                            R"({"run_id":"id","notes":[{"text":7}]})"}) {
        INFO(odd);
        CHECK_THROWS_WITH(run::read_trace(json::parse(odd)),
                          contains("its answer can't be read (") && contains("its version differs"));
    }
}

TEST_CASE("parameters are read as they were written, with the result of setting them") {
    run::parameter_state s;
    s.schema = {.type = "test.lamp",
                .bytes = 4,
                .fields = {{.name = "level", .offset = 0, .initial = {0.25}, .low = 0, .high = 2}}};
    s.values = {{"level", 0.5}};
    s.number = 3;
    s.from = 120;
    CHECK_FALSE(run::to_json(s).contains("message"));
    s.message = "level = 0.5 from frame 120 on";
    const json encoded = run::to_json(s);
    const run::parameter_state read = run::parameters_from(json::parse(encoded.dump()));
    CHECK(run::to_json(read) == encoded);
    CHECK(read.message == s.message);
    CHECK_FALSE(run::parameters_from(run::to_json(run::parameter_state{})).schema);
    for (const char* key : {"schema", "values", "number", "from"}) {
        INFO(key);
        json j = encoded;
        j.erase(key);
        CHECK_THROWS_AS(run::parameters_from(j), config_error);
    }
    json j = encoded;
    j["number"] = "three";
    CHECK_THROWS_WITH(run::parameters_from(j), contains("check that both programs have the same version"));
}

TEST_CASE("a viewer's request for a picture and the shared memory are read as they were written") {
    CHECK(write_message(run::tap_request{"fragment"}) == json::parse(R"({"type":"tap","stage":"fragment"})"));
    CHECK(json::parse(R"({"type":"tap","stage":"fragment"})").get<run::tap_request>().stage == "fragment");
    CHECK(json::parse(R"({"type":"tap"})").get<run::tap_request>().stage.empty());
    CHECK_THROWS_AS(json::parse(R"({"stage":7})").get<run::tap_request>(), json::exception);
    run::tap_answer a{"id", 2, "fragment", shm::max_incarnations + 3, {{"type", "t"}}, {{"kind", "memfd"}},
                      {}};
    a.device.kind = device::device_kind::cuda;
    a.device.uuid = "GPU-1";
    const json encoded = json(a);
    CHECK(encoded["device"] == json::parse(R"({"kind":"cuda","uuid":"GPU-1","ordinal":0})"));
    CHECK(json(run::read_tap(encoded)) == encoded);
}

TEST_CASE("a refused picture has a reason, and another version's answer is invalid") {
    CHECK_THROWS_WITH(run::read_tap(json::parse(R"({"ok":false,"message":"no stage"})")),
                      contains("no stage"));
    CHECK_THROWS_WITH(run::read_tap(json::parse(R"({"ok":false,"message":"another run"})")),
                      contains("another run"));
    CHECK_THROWS_WITH(run::read_tap(json::object()), contains("does not share pictures"));
    const json whole =
        run::tap_answer{"id", 2, "a", shm::max_incarnations, json::object(), json::object(), {}};
    for (const char* key : {"link", "format", "memory", "device"}) {
        INFO(key);
        json j = whole;
        j.erase(key);
        CHECK_THROWS_AS(run::read_tap(j), json::exception);
    }
    json j = whole;
    j["link"] = "two";
    CHECK_THROWS_AS(run::read_tap(j), json::exception);
    j = whole;
    j["entry"] = 3;  // an incarnation's
    CHECK(run::read_tap(j).entry == shm::max_incarnations);
}
