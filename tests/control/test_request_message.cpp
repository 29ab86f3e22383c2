// The requests to a run: the JSON of each request, as programs of other versions send and expect it, and the
// requests that are refused.

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
    return {{run::ps_request{}, R"({"type":"ps"})"},
            {run::parameters_request{}, R"({"type":"parameters"})"},
            {run::set_request{.values = values}, R"({"type":"set","values":{"spin":0.5}})"},
            {run::set_request{.reset = true}, R"({"type":"set","reset":true})"},
            {run::set_request{.values = values, .reset = true},
             R"({"type":"set","reset":true,"values":{"spin":0.5}})"},
            {run::trace_request{500, 17}, R"({"type":"trace","lease_ms":500,"since":17})"},
            {run::trace_file_request{.host = "b"}, R"({"type":"trace_file","host":"b"})"},
            {run::trace_file_request{.host = "b", .id = 7, .stop = true, .at = 65536},
             R"({"type":"trace_file","host":"b","id":7,"stop":true,"at":65536})"},
            {run::end_request{}, R"({"type":"shutdown"})"},
            {run::end_request{true}, R"({"type":"shutdown","as_interrupt":true})"},
            {run::rebuild_request{}, R"({"type":"rebuild"})"},
            {run::seat_request{seat_order::stop, "a"}, R"({"type":"seat","order":"stop","stage":"a"})"},
            {run::seat_request{seat_order::cont, "a.1"}, R"({"type":"seat","order":"cont","stage":"a.1"})"},
            {run::seat_request{seat_order::restart, "a"}, R"({"type":"seat","order":"restart","stage":"a"})"},
            {run::seat_request{seat_order::down, "a"}, R"({"type":"seat","order":"down","stage":"a"})"},
            {run::seat_request{seat_order::up, "a"}, R"({"type":"seat","order":"up","stage":"a"})"},
            {run::kill_request{"a", 15}, R"({"type":"kill","signal":15,"stage":"a"})"},
            {run::inject_request{"a", shm::injected_fault::gpu_fault},
             R"({"type":"inject","fault":"gpu-fault","stage":"a"})"},
            {run::reload_request{}, R"({"type":"reload"})"},
            {run::reload_request{"t", "/b", json::object(), true, "/c"},
             R"({"type":"reload","text":"t","programs":"/b","restart_all":true,"successor":"/c"})"},
            {run::continue_request{"/bin/c"}, R"({"type":"continue","successor":"/bin/c"})"},
            {run::device_request{"cuda:0", "a", json::object()},
             R"({"type":"device","device":"cuda:0","stage":"a","probe":{}})"}};
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

TEST_CASE("fields that a request omits have their previous defaults") {
    const auto read = [](const char* text) { return run::read_request(json::parse(text)); };
    CHECK(std::get<run::kill_request>(read(R"({"type":"kill","stage":"a"})")).signal == 9);
    const auto trace = std::get<run::trace_request>(read(R"({"type":"trace"})"));
    CHECK(trace.lease_ms == 3000);
    CHECK(trace.since == 0);
    const auto set = std::get<run::set_request>(read(R"({"type":"set"})"));
    CHECK(set.values == json::object());
    CHECK_FALSE(set.reset);
    CHECK(std::holds_alternative<run::end_request>(read(R"({"type":"shutdown","extra":1})")));
}

TEST_CASE("a request with keys of a wrong type is refused with the reason") {
    for (const char* bad :
         {R"({})", R"({"type":{"x":1}})", R"({"type":7})", R"({"type":"kill","stage":3})",
          R"({"type":"kill","stage":"a","signal":"KILL"})", R"({"type":"inject","stage":"a","fault":9})",
          R"({"type":"seat","order":"down","stage":null})", R"({"type":"inject","stage":"a"})",
          R"({"type":"seat","order":"stop"})", R"({"type":"seat","order":"stop","stage":["a"]})",
          R"({"type":"seat","order":"fly","stage":"a"})", R"({"type":"trace","lease_ms":"long"})",
          R"({"type":"trace","since":[]})", R"({"type":"set","reset":"yes"})"}) {
        INFO(bad);
        CHECK_THAT(refusal_of(bad), contains("the request can't be read: "));
    }
}

TEST_CASE("a request with a field of another request is refused, because the field would have no effect") {
    CHECK(refusal_of(R"({"type":"shutdown","stage":"a"})") ==
          "the request can't be read: \"stage\" is not a field of \"shutdown\"");
    CHECK_THAT(refusal_of(R"({"type":"seat","order":"stop","stage":"a","fault":"hang"})"),
               contains("\"fault\" is not a field of \"seat\""));
}

TEST_CASE("an unknown command and an unknown fault are refused with those that are known") {
    CHECK(refusal_of(R"({"type":"fly"})") ==
          "the request can't be read: \"type\": unknown \"fly\"; expected ps, parameters, set, trace, "
          "trace_file, "
          "shutdown, rebuild, seat, kill, inject, reload, continue or device");
    CHECK_THAT(refusal_of(R"({"type":"kil"})"), contains("did you mean \"kill\"?"));
    CHECK(refusal_of(R"({"type":"inject","stage":"a","fault":"earthquake"})") ==
          "inject: unknown fault \"earthquake\"; the known faults are hang, gpu-fault, exit, abort, "
          "scribble-input, "
          "overrun-output, scribble-control, throw and gpu-lost");
    CHECK_THAT(refusal_of(R"({"type":"inject","stage":"a","fault":"nothing"})"),
               contains("unknown fault \"nothing\""));
}

TEST_CASE("a copy of a stage's request can name another stage") {
    CHECK(run::to_json(run::of_stage(run::kill_request{"a", 6}, "b")) ==
          json::parse(R"({"type":"kill","signal":6,"stage":"b"})"));
    CHECK(run::to_json(run::of_stage(run::ps_request{}, "b")) == json::parse(R"({"type":"ps"})"));
}
