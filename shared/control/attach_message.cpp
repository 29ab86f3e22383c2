#include "control/attach_message.hpp"

#include "core/errors.hpp"

namespace carousel::run {

using nlohmann::json;

json to_json(const attach_message& m) {
    json j = m;
    j.update(json(m.incarnation));
    return {{"attach", std::move(j)}};
}

attach_message read_attach(const json& answer) {
    if (answer.contains("refused")) throw config_error(answer.at("refused").get<std::string>());
    const json& j = answer.at("attach");
    attach_message m = j.get<attach_message>();
    m.incarnation = j.get<ring::incarnation_id>();
    if (m.incarnation.seat >= shm::max_seats || m.incarnation.entry >= shm::max_incarnations)
        throw shm_error("the supervisor's answer names a seat out of range");
    if (m.outputs.size() > shm::max_outputs)
        throw shm_error("the supervisor's answer names more outputs than a stage can have");
    if (m.sampled.size() > shm::max_sampled_inputs)
        throw shm_error("the supervisor's answer names more sampled inputs than a stage can have");
    return m;
}

}  // namespace carousel::run
