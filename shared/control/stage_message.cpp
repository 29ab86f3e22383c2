#include "control/stage_message.hpp"

#include "core/json_text.hpp"

namespace carousel::run {

using nlohmann::json;

namespace {

/// "seat", "entry" and "epoch" are keys of the message itself; without a seat: empty.
template <typename Message>
Message read(const json& j) {
    Message m = j.get<Message>();
    if (j.contains("seat")) m.incarnation = j.get<ring::incarnation_id>();
    return m;
}

template <typename Message>
json write(const Message& m) {
    json j = m;
    if (m.incarnation) j.update(json(m.incarnation));
    return j;
}

}  // namespace

json to_json(const hello_message& m) { return {{"hello", write(m)}}; }
json to_json(const return_message& m) { return {{"return", write(m)}}; }
json to_json(const owner_message& m) { return {{"owner", m}}; }
json to_json(const welcome_message& m) { return {{"welcome", m}}; }
json ready_message() { return {{"ready", true}}; }
json back_message() { return {{"back", true}}; }
json left_message() { return {{"left", true}}; }

json refusal(const std::string& why, bool again) {
    json j{{"refused", why}};
    if (again) j["again"] = true;
    return j;
}

hello_message read_hello(const json& message) { return read<hello_message>(message.at("hello")); }
return_message read_return(const json& message) { return read<return_message>(message.at("return")); }
owner_message read_owner(const json& message) { return message.at("owner").get<owner_message>(); }

welcome_answer read_welcome(const std::string& text) {
    const json j = parse_json_or_discard(text, json_channel::message);
    welcome_answer a;
    if (!j.is_object()) return a;
    if (const auto at = j.find("refused"); at != j.end())
        a.refused = at->is_string() ? at->get<std::string>() : std::string();
    if (const auto at = j.find("welcome"); at != j.end() && at->is_object())
        read_known_fields(*at, a.welcome.emplace());
    return a;
}

}  // namespace carousel::run
