#include "control/attach_message.hpp"

#include "control/answer_message.hpp"
#include "core/errors.hpp"

namespace carousel::run {

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
