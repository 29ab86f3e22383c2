#pragma once
// What a supervisor says of any request: that it was carried out, or why not. Written and read here.
//   {"ok": true, "message": "..."}
//   {"ok": false, "code": 2, "message": "..."}      "code": an exit code
// With "later": true the same may be asked again.
// Answers that say more (ps_message.hpp, parameter_message.hpp, trace_message.hpp) have "ok": true, too, and
// a refusal is always one of these. Any process, any thread.

#include <optional>
#include <string>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/types.hpp"

namespace carousel::run {

struct verdict {
    bool ok = false;
    std::optional<std::string> message;
    std::optional<i64> code;  ///< of a refusal
    bool later = false;       ///< refused by a state that passes: the same may be carried out later
};

[[nodiscard]] verdict carried_out(std::string message);
[[nodiscard]] verdict refused(int code, std::string message);

[[nodiscard]] nlohmann::json to_json(const verdict& v);
/// Never throws: what is missing, or of another type, is not said; an answer without "ok": true is a refusal.
[[nodiscard]] verdict read_verdict(const nlohmann::json& answer);

/// By a state that passes: the same may be carried out later.
class refused_for_now : public config_error {
public:
    using config_error::config_error;
};

}  // namespace carousel::run
