#pragma once
// What the commands have in common that ask a supervisor for something. Shows CLI11 (by command.hpp).

#include <nlohmann/json_fwd.hpp>

#include "cli/options.hpp"
#include "run/request_message.hpp"

namespace carousel::supervisor {

/// Throws what a supervisor's refusal says.
void require_well(const nlohmann::json& reply, const std::string& pipeline);

struct told_arguments : client_arguments {
    std::vector<std::string> stages;
};
/// -p, --wait and STAGE.
void add_told_options(const command_parts& p, told_arguments& a, bool stage_required = true);

/// Sends the request once for each stage, and says what came of it. Returns the code of the first refusal.
int tell_stages(const told_arguments& a, const run::request& request, const cli_environment& env);

/// A command that takes stages and nothing else: its name is that of an order (run::seat_order).
[[nodiscard]] command_action add_plain(const command_parts& p);

}  // namespace carousel::supervisor
