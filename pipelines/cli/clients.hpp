#pragma once
// Shared by the commands that send requests to a supervisor. Includes CLI11 (by command.hpp).

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "cli/options.hpp"
#include "control/request_message.hpp"
#include "run/directory.hpp"

namespace carousel::supervisor {

/// Throws carousel::error with the supervisor's message if `reply` is a refusal.
void require_well(const nlohmann::json& reply, const std::string& pipeline);

struct stage_request_arguments : client_arguments {
    std::vector<std::string> stages;
};
/// Adds -p, --wait and STAGE.
void add_request_options(const command_parts& p, stage_request_arguments& a, bool stage_required = true);

/// Checks a precondition of a request to a stage of a run; throws carousel::error if the precondition is not
/// met.
using stage_check = std::function<void(const run::record& r, const std::string& stage)>;

/// Sends the request once per stage and prints each result. Returns the exit code of the first refusal, else
/// 0.
int send_to_stages(const stage_request_arguments& a, const run::request& request, const cli_environment& env,
                   const stage_check& check = {});

/// Adds a command whose only arguments are stages; its name is that of an order (run::seat_order).
[[nodiscard]] command_action add_plain(const command_parts& p);
[[nodiscard]] command_action add_plain(const command_parts& p, const stage_check& check);

}  // namespace carousel::supervisor
