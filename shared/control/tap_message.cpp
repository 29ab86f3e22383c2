#include "control/tap_message.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "shm/control_block.hpp"

namespace carousel::run {

using nlohmann::json;

json to_json(const tap_request& r) { return {{"tap", {{"stage", r.stage}}}}; }

tap_request read_tap_request(const json& message) { return {message.at("tap").value("stage", "")}; }

json to_json(const tap_answer& a) {
    const char* kind = a.device.kind == device::device_kind::cuda ? "cuda" : "cpu";
    const json device{{"kind", kind}, {"uuid", a.device.uuid}, {"ordinal", a.device.ordinal}};
    const json tap{{"run_id", a.run_id}, {"link", a.link},     {"stage", a.stage}, {"entry", a.entry},
                   {"format", a.format}, {"memory", a.memory}, {"device", device}};
    return {{"tap", tap}};
}

tap_answer read_tap(const json& answer) {
    if (!answer.contains("tap"))
        throw config_error(answer.value(
            "refused", answer.value("message", std::string("the supervisor does not share pictures"))));
    const json& j = answer.at("tap");
    tap_answer a;
    a.run_id = j.value("run_id", "");
    a.link = j.at("link");
    a.stage = j.value("stage", "");
    a.entry = std::max(shm::max_incarnations, j.value("entry", shm::max_incarnations));
    a.format = j.at("format");
    a.memory = j.at("memory");
    const json& d = j.at("device");
    a.device.kind = d.value("kind", "cpu") == "cuda" ? device::device_kind::cuda : device::device_kind::cpu;
    a.device.uuid = d.value("uuid", "");
    a.device.ordinal = d.value("ordinal", 0);
    return a;
}

}  // namespace carousel::run
