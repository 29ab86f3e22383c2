#include "control/answer_message.hpp"

#include <utility>

namespace carousel::run {

using nlohmann::json;

verdict carried_out(std::string message) { return {true, std::move(message), std::nullopt, false}; }
verdict refused(int code, std::string message) { return {false, std::move(message), code, false}; }
verdict refused(std::string message) { return {false, std::move(message), std::nullopt, false}; }

json to_json(const verdict& v) {
    json j = v;
    if (!v.later) j.erase("later");
    return j;
}

verdict read_verdict(const json& answer) {
    verdict v;
    read_known_fields(answer, v);
    return v;
}

}  // namespace carousel::run
