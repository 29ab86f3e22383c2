// What may be asked of a run: the JSON of each request, as programs of other versions send and expect it, and
// what is refused.

#include "control/request_message.hpp"
#include "core/errors.hpp"
#include "shm/injected_fault.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;
using test::contains;

namespace {

struct sample {
    run::request what;
    const char* on_the_wire;
};

std::vector<sample> one_of_each() {
    using run::seat_order;
    const json values{{"spin", 0.5}};
    return {{run::ps_request{}, R"({"command":"ps"})"},
            {run::parameters_request{}, R"({"command":"parameters"})"},
            {run::set_request{.values = values}, R"({"command":"set","values":{"spin":0.5}})"},
            {run::set_request{.reset = true}, R"({"command":"set","reset":true})"},
            {run::set_request{.values = values, .reset = true},
             R"({"command":"set","reset":true,"values":{"spin":0.5}})"},
            {run::trace_request{500, 17}, R"({"command":"trace","lease_ms":500,"since":17})"},
            {run::trace_file_request{.host = "b"}, R"({"command":"trace_file","host":"b"})"},
            {run::trace_file_request{.host = "b", .id = 7, .stop = true, .at = 65536},
             R"({"command":"trace_file","host":"b","id":7,"stop":true,"at":65536})"},
            {run::end_request{}, R"({"command":"shutdown"})"},
            {run::end_request{true}, R"({"command":"shutdown","as_interrupt":true})"},
            {run::rebuild_request{}, R"({"command":"rebuild"})"},
            {run::seat_request{seat_order::stop, "a"}, R"({"command":"stop","stage":"a"})"},
            {run::seat_request{seat_order::cont, "a.1"}, R"({"command":"cont","stage":"a.1"})"},
            {run::seat_request{seat_order::restart, "a"}, R"({"command":"restart","stage":"a"})"},
            {run::seat_request{seat_order::down, "a"}, R"({"command":"down","stage":"a"})"},
            {run::seat_request{seat_order::up, "a"}, R"({"command":"up","stage":"a"})"},
            {run::kill_request{"a", 15}, R"({"command":"kill","signal":15,"stage":"a"})"},
            {run::inject_request{"a", shm::injected_fault::gpu_fault},
             R"({"command":"inject","fault":"gpu-fault","stage":"a"})"}};
}

std::string refusal_of(const char* message) {
    try {
        (void)run::read_request(json::parse(message));
        return "";
    } catch (const config_error& e) {
        return e.what();
    }
}

}  // namespace

TEST_CASE("each request is written as the socket has always had it, and read as it was meant") {
    for (const sample& s : one_of_each()) {
        INFO(s.on_the_wire);
        CHECK(run::to_json(s.what) == json::parse(s.on_the_wire));
        const run::request read = run::read_request(json::parse(s.on_the_wire));
        CHECK(read.index() == s.what.index());
        CHECK(run::to_json(read) == json::parse(s.on_the_wire));
    }
}

TEST_CASE("what a request leaves out is what it always was") {
    const auto read = [](const char* text) { return run::read_request(json::parse(text)); };
    CHECK(std::get<run::kill_request>(read(R"({"command":"kill","stage":"a"})")).signal == 9);
    const auto trace = std::get<run::trace_request>(read(R"({"command":"trace"})"));
    CHECK(trace.lease_ms == 3000);
    CHECK(trace.since == 0);
    const auto set = std::get<run::set_request>(read(R"({"command":"set"})"));
    CHECK(set.values == json::object());
    CHECK_FALSE(set.reset);
    CHECK(std::get<run::seat_request>(read(R"({"command":"stop"})")).stage.empty());
    CHECK(std::holds_alternative<run::end_request>(read(R"({"command":"down"})")));
    CHECK(std::holds_alternative<run::end_request>(read(R"({"command":"shutdown","extra":1})")));
    CHECK(std::holds_alternative<run::seat_request>(read(R"({"command":"stop","stage":"a","fault":1})")));
}

TEST_CASE("a request with keys of a wrong type is refused with the reason") {
    for (const char* bad :
         {R"({})", R"({"command":{"x":1}})", R"({"command":7})", R"({"command":"kill","stage":3})",
          R"({"command":"kill","stage":"a","signal":"KILL"})",
          R"({"command":"inject","stage":"a","fault":9})", R"({"command":"down","stage":null})",
          R"({"command":"inject","stage":"a"})", R"({"command":"stop","stage":["a"]})",
          R"({"command":"rebuild","stage":1})", R"({"command":"trace","lease_ms":"long"})",
          R"({"command":"trace","since":[]})", R"({"command":"set","reset":"yes"})"}) {
        INFO(bad);
        CHECK_THAT(refusal_of(bad), contains("the request can't be read: "));
    }
}

TEST_CASE("an unknown command and an unknown fault are refused with those that are known") {
    CHECK(refusal_of(R"({"command":"fly"})") ==
          "unknown command \"fly\": ps, trace, trace_file, parameters, set, kill, inject, stop, cont, "
          "restart, down, up "
          "and shutdown are known");
    CHECK_THAT(refusal_of(R"({"command":"shutdown","stage":"a"})"), contains("unknown command \"shutdown\""));
    CHECK(refusal_of(R"({"command":"inject","stage":"a","fault":"earthquake"})") ==
          "inject: unknown fault \"earthquake\": " + shm::fault_names(" and ") + " are known");
    CHECK_THAT(refusal_of(R"({"command":"inject","stage":"a","fault":"nothing"})"),
               contains("unknown fault \"nothing\""));
}

TEST_CASE("the requested run is named in each request") {
    const run::heading h = run::read_heading(json::parse(R"({"command":"fly","run_id":"mine","stage":7})"));
    CHECK(h.command == "fly");
    CHECK(h.run_id == "mine");
    CHECK_FALSE(run::read_heading(json::parse(R"({"command":"ps"})")).run_id);
    for (const char* bad : {R"({"run_id":"mine"})", R"({"command":"ps","run_id":7})",
                            R"({"command":"ps","run_id":null})", "[]"}) {
        INFO(bad);
        CHECK_THROWS_AS(run::read_heading(json::parse(bad)), config_error);
    }
}

TEST_CASE("what is asked of a stage is asked of the next one, too") {
    CHECK(run::to_json(run::of_stage(run::kill_request{"a", 6}, "b")) ==
          json::parse(R"({"command":"kill","signal":6,"stage":"b"})"));
    CHECK(run::to_json(run::of_stage(run::ps_request{}, "b")) == json::parse(R"({"command":"ps"})"));
}
