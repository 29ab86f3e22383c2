#pragma once
// The differences between the plan of a running pipeline and a changed pipeline file: which keys the
// supervisor takes over at once, for which a stage must be restarted, and which are fixed while a run lasts.
// Plain data; reads and writes nothing.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

enum class change_kind : u8 {
    live,     ///< the supervisor reads the key each time that it needs it
    restart,  ///< a stage reads the key when it starts
    refused,  ///< the key is fixed while a run lasts (rings, graph, devices, ...)
};

struct plan_change {
    change_kind kind = change_kind::refused;
    std::string stage;        ///< "": a key of [pipeline] or [parameters]
    std::string key;          ///< "restart", "settings.gain", "parameters.exposure"
    nlohmann::json from, to;  ///< null: the key is absent
    std::string why;          ///< reason of a refusal, as a clause; may be ""
    /// "stage fragment: settings.gain: 1 -> 2"
    [[nodiscard]] std::string text() const;
};

/// The values of all keys: identity_of() and the keys that it leaves out because a successor may choose them.
[[nodiscard]] nlohmann::json values_of_plan(const nlohmann::json& identity, const run_setup& s);

/// `then` and `now`: values_of_plan().
[[nodiscard]] std::vector<plan_change> changes_between(const nlohmann::json& then, const nlohmann::json& now);

/// Takes the keys that are live or need a restart from `next` into `running`. Both have the same stages.
void take_over(run_setup& running, const run_setup& next);

}  // namespace carousel::supervisor
