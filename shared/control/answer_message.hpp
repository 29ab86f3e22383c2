#pragma once
// The supervisor's verdict on a request: carried out, or refused and why. This file writes and reads it.
//   {"ok": true, "message": "..."}
//   {"ok": false, "code": 2, "message": "..."}      "code": an exit code
// With "later": true the request can be repeated. Answers with more content (ps_message.hpp,
// parameter_message.hpp, trace_message.hpp) also have "ok": true; every refusal has the form above. Any
// process, any thread.

#include <optional>
#include <string>

#include "core/described.hpp"
#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel::run {

struct verdict {
    bool ok = false;
    std::optional<std::string> message;
    std::optional<i64> code;  ///< of a refusal: an exit code
    bool later = false;       ///< refused because of a temporary state: a later attempt can succeed
};
BOOST_DESCRIBE_STRUCT(verdict, (), (ok, message, code, later))

[[nodiscard]] verdict carried_out(std::string message);
[[nodiscard]] verdict refused(int code, std::string message);
/// Without an exit code: to a stage or a viewer.
[[nodiscard]] verdict refused(std::string message);

[[nodiscard]] nlohmann::json to_json(const verdict& v);
/// Never throws: a field that is missing or has another type stays empty; an answer without "ok": true is a
/// refusal.
[[nodiscard]] verdict read_verdict(const nlohmann::json& answer);

/// Refused because of a temporary state: a later attempt can succeed.
class refused_for_now : public config_error {
public:
    using config_error::config_error;
};

}  // namespace carousel::run
