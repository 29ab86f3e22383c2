#include "control/stage_message.hpp"

#include "core/json_text.hpp"

namespace carousel::run {

using nlohmann::json;

namespace {

ring::incarnation_id read_incarnation(const json& j) {
    return {j.value("seat", shm::none), j.value("entry", shm::none), j.value("epoch", 0U)};
}

json to_json(const clock_identity& c) {
    json j{{"time_namespace", c.time_namespace}};
    if (c.offset_ns) j["offset_ns"] = *c.offset_ns;
    if (c.realtime_ns) j["realtime_ns"] = *c.realtime_ns;
    return j;
}

/// An older build does not send its clock: the result is empty.
clock_identity read_clock(const json& hello) {
    const json j = hello.value("clock", json::object());
    clock_identity c{j.value("time_namespace", "")};
    if (j.contains("offset_ns")) c.offset_ns = j.at("offset_ns").get<i64>();
    if (j.contains("realtime_ns")) c.realtime_ns = j.at("realtime_ns").get<i64>();
    return c;
}

}  // namespace

json to_json(const hello_message& m) {
    json j{{"stage", m.stage}, {"pid", m.pid}, {"start_time", m.start_time}, {"clock", to_json(m.clock)}};
    if (m.port) j.update({{"port", true}, {"writes", m.writes}});
    if (m.incarnation)
        j.update(
            {{"seat", m.incarnation.seat}, {"entry", m.incarnation.entry}, {"epoch", m.incarnation.epoch}});
    return {{"hello", j}};
}

json to_json(const return_message& m) {
    return {{"return",
             {{"run_id", m.run_id},
              {"stage", m.stage},
              {"seat", m.incarnation.seat},
              {"entry", m.incarnation.entry},
              {"epoch", m.incarnation.epoch},
              {"ready", m.ready},
              {"memory", m.memory},
              {"start_time", m.start_time}}}};
}

json to_json(const owner_message& m) {
    return {{"owner", {{"run_id", m.run_id}, {"start_time", m.start_time}}}};
}
json to_json(const welcome_message& m) { return {{"welcome", {{"log", m.log}}}}; }
json ready_message() { return {{"ready", true}}; }
json back_message() { return {{"back", true}}; }
json left_message() { return {{"left", true}}; }

json refusal(const std::string& why, bool again) {
    json j{{"refused", why}};
    if (again) j["again"] = true;
    return j;
}

hello_message read_hello(const json& message) {
    const json& j = message.at("hello");
    return {j.value("stage", ""),   read_incarnation(j),      j.value("pid", 0),
            j.value("port", false), j.value("writes", false), j.value("start_time", u64{0}),
            read_clock(j)};
}

return_message read_return(const json& message) {
    const json& j = message.at("return");
    return {j.value("run_id", ""),
            j.value("stage", ""),
            read_incarnation(j),
            j.value("ready", false),
            j.value("memory", json::array()),
            j.value("start_time", u64{0})};
}

owner_message read_owner(const json& message) {
    const json& j = message.at("owner");
    return {j.value("run_id", ""), j.value("start_time", u64{0})};
}

welcome_answer read_welcome(const std::string& text) {
    const json j = parse_json_or_discard(text, json_channel::message);
    welcome_answer a;
    if (!j.is_object()) return a;
    if (const auto at = j.find("refused"); at != j.end())
        a.refused = at->is_string() ? at->get<std::string>() : std::string();
    if (const auto at = j.find("welcome"); at != j.end() && at->is_object()) {
        int log = -1;
        read_member(*at, "log", log);
        a.welcome = {log};
    }
    return a;
}

}  // namespace carousel::run
