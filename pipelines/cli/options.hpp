#pragma once
// Options that several commands share, and requests to a supervisor. Includes CLI11 (by command.hpp).

#include <nlohmann/json_fwd.hpp>

#include <functional>

#include "cli/command.hpp"
#include "control/request_message.hpp"
#include "run/directory.hpp"
#include "spec/options.hpp"

namespace carousel::supervisor {

// Options that several commands share. Includes CLI11 (by command.hpp).

/// The options -p and --wait of commands that send requests to a running pipeline.
struct client_arguments {
    std::string pipeline;
    std::string wait;  ///< as given
    f64 wait_s = 0;
};
void add_client_options(const command_parts& p, client_arguments& a);
/// Sets wait_s. Throws config_error if --wait is not a time.
void read_wait(client_arguments& a);

/// Returns the value of an option as a time in seconds, or the value `otherwise` if `text` is empty. If the
/// value is not a time, throws a config_error that names the option.
[[nodiscard]] f64 seconds_or(const char* option, const std::string& text, f64 otherwise);

void add_json(const command_parts& p, const char* text = "Print JSON");
void add_no_color(const command_parts& p, bool& no_color);
/// Adds --http-host NAME, which may be repeated.
void add_http_hosts(const command_parts& p, std::vector<std::string>& names);
/// Adds the option -p for commands that select a running pipeline.
void add_run_name(const command_parts& p, std::string& name);

void add_pipeline_file(const command_parts& p, std::string& file);
void add_report(const command_parts& p, std::string& file, const char* text);

// Options that override keys of the pipeline file.
void add_device(const command_parts& p, pipeline_options& keys);
void add_fps(const command_parts& p, pipeline_options& keys);
void add_size(const command_parts& p, pipeline_options& keys);
void add_mesh(const command_parts& p, pipeline_options& keys, const char* text);
void add_set(const command_parts& p, pipeline_options& keys);
/// Adds all of these options. With `with_name`, also adds -p, the name under which the pipeline runs.
void add_keys(const command_parts& p, pipeline_options& keys, bool with_name = true);

// Shared by the commands that send requests to a supervisor. Includes CLI11 (by command.hpp).

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

/// Sends the request once per stage and prints each result. Returns the exit code of the first refusal, or 0
/// if there is none.
int send_to_stages(const stage_request_arguments& a, const run::request& request, const cli_environment& env,
                   const stage_check& check = {});

/// Adds a command whose only arguments are stages. The command's name is the name of the request that it
/// sends (run::seat_order).
[[nodiscard]] command_action add_plain(const command_parts& p);
[[nodiscard]] command_action add_plain(const command_parts& p, const stage_check& check);

}  // namespace carousel::supervisor
