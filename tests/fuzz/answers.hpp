#pragma once
// Any text as a supervisor's reply: what each reader of replies makes of it. Data that was read is written
// again exactly as it was read.

#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "control/trace_message.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace carousel::test {

template <typename F>
void read_or_refuse(F&& f) {
    try {
        f();
    } catch (const error&) {  // of another version
    }
}

inline void read_every_answer(const nlohmann::json& answer) {
    const nlohmann::json ps = run::to_json(run::read_ps(answer));
    require(run::to_json(run::read_ps(ps)) == ps, "what ps says is read as it is told");
    const nlohmann::json verdict = run::to_json(run::read_verdict(answer));
    require(run::to_json(run::read_verdict(verdict)) == verdict, "a verdict is read as it is told");
    run::reload_answer reload;
    read_known_fields(answer, reload);
    read_or_refuse([&] { (void)run::read_trace(answer); });
    read_or_refuse([&] { (void)run::parameters_from(answer); });
}

}  // namespace carousel::test
