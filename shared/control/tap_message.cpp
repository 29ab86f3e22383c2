#include "control/tap_message.hpp"

#include <algorithm>

#include "control/answer_message.hpp"
#include "core/errors.hpp"
#include "shm/control_block.hpp"

namespace carousel::run {

tap_answer read_tap(const nlohmann::json& answer) {
    if (const verdict v = read_verdict(answer); !v.ok)
        throw config_error(v.message.value_or("the supervisor does not share pictures"));
    auto a = answer.get<tap_answer>();
    a.entry = std::max(shm::max_incarnations, a.entry);
    return a;
}

}  // namespace carousel::run
