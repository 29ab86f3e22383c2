#pragma once
// The parameters of the watched run, for the dashboard and for programs.
//
// /parameters.json, and "parameters" of /status.json; null if the pipeline has none or its supervisor has not
// reported them yet:
//   type · number: changes since the start · from: the first frame of the newest set
//   fields [{name, kind "number" | "integer" | "flag" | "choice", count, initial [...] (a choice: its
//            index), low, high, usual_low, usual_high (equal: there is no usual range), step (0: none),
//            label, unit, role, below, choices [...]}]
//     each field has all keys, as in ring::parameter
//   values {name: value}: the values for future frames, in the form of POST /parameters
// POST /parameters {name: value, ...}, POST /parameters/reset: {ok, message, from}

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

[[nodiscard]] nlohmann::json parameters_of(const view& v);
[[nodiscard]] std::string parameters_json(const view& v);

/// The values in a request's body, {name: value}; null, with a sentence in `why`, if the body contains none.
[[nodiscard]] nlohmann::json values_in(const std::string& body, std::string& why);

}  // namespace carousel::viewer::web
