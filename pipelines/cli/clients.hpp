#pragma once
// What the commands have in common that ask a supervisor for something. Shows CLI11 (by command.hpp).

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "cli/options.hpp"
#include "run/directory.hpp"
#include "run/request_message.hpp"

namespace carousel::supervisor {

/// Throws what a supervisor's refusal says.
void require_well(const nlohmann::json& reply, const std::string& pipeline);

struct stage_request_arguments : client_arguments {
    std::vector<std::string> stages;
};
/// -p, --wait and STAGE.
void add_request_options(const command_parts& p, stage_request_arguments& a, bool stage_required = true);

/// What has to be so before a stage of a run is told anything; throws carousel::error where it isn't.
using stage_check = std::function<void(const run::record& r, const std::string& stage)>;

/// Sends the request once for each stage, and says what came of it. Returns the code of the first refusal.
int send_to_stages(const stage_request_arguments& a, const run::request& request, const cli_environment& env,
                   const stage_check& check = {});

/// A command that takes stages and nothing else: its name is that of an order (run::seat_order).
[[nodiscard]] command_action add_plain(const command_parts& p);
[[nodiscard]] command_action add_plain(const command_parts& p, const stage_check& check);

}  // namespace carousel::supervisor
