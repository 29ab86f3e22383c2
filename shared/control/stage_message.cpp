#include "control/stage_message.hpp"

#include "control/answer_message.hpp"
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

}  // namespace carousel::run
