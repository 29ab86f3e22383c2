#include "control/stage_message.hpp"

#include "control/request_message.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"

namespace carousel::run {

welcome_answer read_welcome(const std::string& text) {
    const nlohmann::json j = parse_json_or_discard(text, json_channel::message);
    welcome_answer a;
    if (!j.is_object() || !j.contains("ok")) return a;
    if (const verdict v = read_verdict(j); v.ok)
        read_known_fields(j, a.welcome.emplace());
    else
        a.refused = v.message.value_or("");
    return a;
}

bool is_start_over(const std::string& text) {
    return is_message_of<std::variant<start_over_message>>(
        parse_json_or_discard(text, json_channel::message));
}

attach_message read_attach(const nlohmann::json& answer) {
    if (const verdict v = read_verdict(answer); !v.ok && v.message) throw config_error(*v.message);
    auto m = answer.get<attach_message>();
    if (m.incarnation.seat >= shm::max_seats || m.incarnation.entry >= shm::max_incarnations)
        throw shm_error("the supervisor's answer names a seat out of range");
    if (m.outputs.size() > shm::max_outputs)
        throw shm_error("the supervisor's answer names more outputs than a stage can have");
    if (m.sampled.size() > shm::max_sampled_inputs)
        throw shm_error("the supervisor's answer names more sampled inputs than a stage can have");
    return m;
}

}  // namespace carousel::run
