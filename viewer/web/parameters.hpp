#pragma once
// What may be set about the watched run, for the page and for programs.
//
// /parameters.json, and "parameters" of /status.json: null where the pipeline has none, or where its
// supervisor hasn't named them yet:
//   type · number: changes since the start · from: the first frame of the newest set
//   fields [{name, kind "number" | "integer" | "flag" | "choice", count, initial [...] (of a choice its
//   index), low, high,
//            usual_low, usual_high (equal: there is no usual range), step (0: none), label, unit, role,
//            below, choices [...]}]
//     all keys in each, as ring::parameter has them
//   values {name: value}: what frames to come will have, as POST /parameters takes them
// POST /parameters {name: value, ...}, POST /parameters/reset: {ok, message, from}

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

[[nodiscard]] nlohmann::json parameters_of(const view& v);
[[nodiscard]] std::string parameters_json(const view& v);

/// The values that a request's body names, as one JSON text; nothing, with a sentence in `why`, for a body
/// that names none.
[[nodiscard]] std::optional<std::string> values_in(const std::string& body, std::string& why);

}  // namespace carousel::viewer::web
