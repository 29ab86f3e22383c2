#pragma once
// What a run's supervisor answers to {"command": "parameters"} and {"command": "set"} (request_message.hpp):
// written and read here.
//   {"command": "parameters"}     -> {"ok": true, "schema": {...}, "values": {...}, "number": 3, "from": 120}
//   {"command": "set", "values": {"spin": 0.5}}  -> the same, and "message": "spin is 0.5 from frame 120 on"
//   {"command": "set", "reset": true}            -> the same: all values as the run was started with
// A refusal (answer_message.hpp) has changed nothing. With "later": true the same may be asked again: so many
// changes wait for frames that have not come.

#include <string>

#include "core/json.hpp"
#include "ring/parameter_schema.hpp"

namespace carousel::run {

struct parameter_state {
    ring::parameter_schema schema;                     ///< none: this pipeline has no parameters
    nlohmann::json values = nlohmann::json::object();  ///< by name: what frames to come will have
    u64 number = 0;                                    ///< changes since the start
    u64 from = 0;                                      ///< first frame of the newest set
    std::string message = {};  ///< what setting has done; "" in the answer to a mere question
};

[[nodiscard]] nlohmann::json to_json(const parameter_state& s);
/// Throws config_error for an answer of another version.
[[nodiscard]] parameter_state parameters_from(const nlohmann::json& answer);

}  // namespace carousel::run
