// The messages between stages, owners of memory and supervisors, written and read.

#include "control/control_message.hpp"
#include "control/request_message.hpp"
#include "control/stage_message.hpp"
#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;
using test::contains;

namespace {

template <typename Message>
Message read_as(const json& j) {
    return std::get<Message>(read_message<run::connection_message>(j));
}

}  // namespace

TEST_CASE("a hello is read as it was written, and one by hand names no seat") {
    const run::hello_message sent{"fragment", {3, 7, 9}, 77, false, false, 1234, {"time:[5]", 6, {}}};
    const json j = write_message(sent);
    CHECK(j ==
          json::parse(
              R"({"type": "hello", "stage": "fragment", "incarnation": {"seat": 3, "entry": 7, "epoch": 9},
                       "pid": 77, "start_time": 1234, "clock": {"time_namespace": "time:[5]", "offset_ns": 6}})"));
    const auto read = read_as<run::hello_message>(j);
    CHECK(read.stage == "fragment");
    CHECK(read.incarnation == sent.incarnation);
    CHECK(read.pid == 77);
    CHECK(read.start_time == 1234);
    CHECK(read.clock == sent.clock);
    const auto by_hand = read_as<run::hello_message>(write_message(run::hello_message{"fragment", {}, 77}));
    CHECK_FALSE(by_hand.incarnation);
    CHECK(by_hand.incarnation.seat == shm::none);
    CHECK(read_as<run::hello_message>(json::parse(R"({"type": "hello"})")).clock == clock_identity{});
    for (const char* bad : {R"({"type": "hello", "incarnation": {"seat": "three"}})", R"({"type": "hullo"})",
                            R"({"type": 7})", R"({"hello": {}})", "[]"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(read_message<run::connection_message>(json::parse(bad)), json::exception);
        CHECK(is_message_of<run::connection_message>(json::parse(bad)) ==
              (std::string_view(bad).find("seat") != std::string_view::npos));
    }
}

TEST_CASE("a returning stage names its run, its seat and the memory that it brings") {
    const json memory = json::parse(R"([{"asset": false, "index": 0, "kind": "memfd", "bytes": 4096}])");
    const json j = write_message(run::return_message{"id", "vertex", {1, 2, 0}, true, memory, 1234});
    CHECK(j.size() == 7);
    const auto read = read_as<run::return_message>(j);
    CHECK(read.run_id == "id");
    CHECK(read.stage == "vertex");
    CHECK(read.incarnation.entry == 2);
    CHECK(read.incarnation.epoch == 0);
    CHECK(read.ready);
    CHECK(read.memory == memory);
    CHECK(read.start_time == 1234);
    const auto bare = read_as<run::return_message>(json::parse(R"({"type": "return"})"));
    CHECK(bare.incarnation.seat == shm::none);
    CHECK_FALSE(bare.ready);
    CHECK(bare.memory == json::array());
}

TEST_CASE("a welcome, a refusal and an invalid answer are distinguished") {
    CHECK(run::read_welcome(json(run::welcome_message{0}).dump()).welcome->log == 0);
    CHECK(run::read_welcome(json(run::welcome_message{}).dump()).welcome->log == -1);
    CHECK(run::read_welcome(R"({"ok": true, "log": "none"})").welcome->log == -1);
    CHECK(run::read_welcome(R"({"ok": true, "log": 4294967296})").welcome->log == -1);
    CHECK(run::read_welcome(run::to_json(run::refused("this is another run")).dump()).refused ==
          "this is another run");
    CHECK(run::read_welcome(R"({"ok": false, "message": 3})").refused == "");
    for (const char* text : {"", "[]", "{}", "{\"log\": 1}", "no json"}) {
        CAPTURE(text);
        CHECK_FALSE(run::read_welcome(text).welcome);
        CHECK_FALSE(run::read_welcome(text).refused);
    }
    CHECK(read_as<run::owner_message>(write_message(run::owner_message{"id"})).run_id == "id");
    CHECK(write_message(run::ready_message{}) == json::parse(R"({"type": "ready"})"));
    CHECK(write_message(run::back_message{}) == json::parse(R"({"type": "back"})"));
    CHECK(write_message(run::detached_message{}) == json::parse(R"({"type": "detached"})"));
    const std::string start_over = write_message(run::start_over_message{}).dump();
    CHECK(run::is_start_over(start_over));
    CHECK_FALSE(run::read_welcome(start_over).refused);  // a program of an earlier version ignores it
    for (const char* text : {"", "[]", R"({"type": 1})", R"({"ok": true})", R"({"type": "ready"})"})
        CHECK_FALSE(run::is_start_over(text));
}

namespace {

run::attach_message whole() {
    run::attach_message m;
    m.run_id = "id";
    m.runtime_directory = "/run/x";
    m.output_directory = "/data/runs/x-1";
    m.stage = "sink";
    m.incarnation = {2, 5, 4};
    m.standby = true;
    m.width = 640;
    m.height = 360;
    m.supervisor_grace_s = 7.5;
    m.settings = {{"out", ""}};
    m.graphs = true;
    m.asked_device = "cuda:1";
    m.folder = "/pipelines";
    m.device = {device::device_kind::cuda, "00ff", 1};
    m.inputs = {{"fragment", {{"type", "t"}}}};
    m.sampled = {{"pose.cloud", {{"type", "c"}}, false}};
    m.parameters = {{"type", "p"}};
    m.links = {{{"link", 1}}};
    m.assets = {{{"index", 0}}};
    m.kept = {{{"asset", false}}};
    return m;
}

}  // namespace

TEST_CASE("the initial state of a stage is read as it was written") {
    const run::attach_message m = whole(), read = run::read_attach(json(m));
    CHECK(json(read) == json(m));
    CHECK(read.incarnation.epoch == 4);
    CHECK(read.runtime_directory == "/run/x");
    CHECK(read.output_directory == "/data/runs/x-1");
    CHECK(read.graphs);
    CHECK(read.device.ordinal == 1);
    CHECK(read.outputs.empty());
    CHECK(read.inputs.at(0).stage == "fragment");
    CHECK(read.sampled.at(0).stage == "pose.cloud");
    CHECK_FALSE(read.sampled.at(0).described);
}

TEST_CASE("a hello answer that refuses, lacks a key or names an invalid seat is not an attachment") {
    CHECK_THROWS_WITH(run::read_attach(run::to_json(run::refused("the run is ending"))),
                      contains("the run is ending"));
    json j = whole();
    for (const char* key : {"ok", "run_id", "incarnation", "device", "inputs", "outputs", "links"}) {
        CAPTURE(key);
        json less = j;
        less.erase(key);
        CHECK_THROWS_AS(run::read_attach(less), json::exception);
    }
    json many = j;
    for (u32 k = 0; k <= shm::max_outputs; ++k)
        many["outputs"].push_back({{"name", "o" + std::to_string(k)}, {"format", {{"type", "t"}}}});
    CHECK_THROWS_AS(run::read_attach(many), shm_error);
    many["outputs"].erase(0);
    CHECK(run::read_attach(many).outputs.at(3).name == "o4");
    for (u32 k = 0; k < shm::max_sampled_inputs; ++k)
        many["sampled"].push_back({{"stage", "s"}, {"format", {{"type", "t"}}}, {"described", true}});
    CHECK_THROWS_AS(run::read_attach(many), shm_error);
    j["incarnation"]["seat"] = shm::max_seats;
    CHECK_THROWS_AS(run::read_attach(j), shm_error);
}
