#include "control/tap_message.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "shm/control_block.hpp"

namespace carousel::run {

using nlohmann::json;

json to_json(const tap_request& r) { return {{"tap", r}}; }
tap_request read_tap_request(const json& message) { return message.at("tap").get<tap_request>(); }
json to_json(const tap_answer& a) { return {{"tap", a}}; }

tap_answer read_tap(const json& answer) {
    if (!answer.contains("tap"))
        throw config_error(answer.value(
            "refused", answer.value("message", std::string("the supervisor does not share pictures"))));
    tap_answer a = answer.at("tap").get<tap_answer>();
    a.entry = std::max(shm::max_incarnations, a.entry);
    return a;
}

}  // namespace carousel::run
