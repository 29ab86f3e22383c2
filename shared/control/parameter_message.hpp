#pragma once
// The supervisor's answers to {"type": "parameters"} and {"type": "set"} (request_message.hpp). This
// file writes and reads them.
//   {"type": "parameters"}     -> {"ok": true, "schema": {...}, "values": {...}, "number": 3, "from": 120}
//   {"type": "set", "values": {"spin": 0.5}}  -> the same, and "message": "spin is 0.5 from frame 120 on"
//   {"type": "set", "reset": true}            -> the same: all values as at the start of the run
// A refusal (answer_message.hpp) has changed nothing. A refusal with "later": true can be retried: too many
// changes are waiting for frames to come.

#include <string>

#include "core/described.hpp"
#include "parameters/parameter_schema.hpp"

namespace carousel::run {

struct parameter_state {
    ring::parameter_schema schema;                     ///< empty: this pipeline has no parameters
    nlohmann::json values = nlohmann::json::object();  ///< by name: values of frames to come
    u64 number = 0;                                    ///< changes since the start
    u64 from = 0;                                      ///< first frame of the newest set
    std::string message = {};                          ///< result of "set"; "" in the answer to "parameters"
};

[[nodiscard]] nlohmann::json to_json(const parameter_state& s);
/// Throws config_error for an answer of another version.
[[nodiscard]] parameter_state parameters_from(const nlohmann::json& answer);

}  // namespace carousel::run
