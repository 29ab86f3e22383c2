#pragma once
// Options that several commands share. Shows CLI11 (by command.hpp).

#include "cli/command.hpp"
#include "spec/options.hpp"

namespace carousel::supervisor {

/// -p and --wait of those that talk to a running pipeline.
struct client_arguments {
    std::string pipeline;
    std::string wait;  ///< as it was written
    f64 wait_s = 0;
};
void add_client_options(const command_parts& p, client_arguments& a);
/// Throws config_error: --wait that is no time.
void read_wait(client_arguments& a);

/// The value of an option, as it was written. Throws config_error that names the option.
[[nodiscard]] f64 seconds_or(const char* option, const std::string& text, f64 otherwise);

void add_json(const command_parts& p, const char* text = "Print JSON");
void add_no_color(const command_parts& p, bool& no_color);
/// --http-host NAME, which may be repeated.
void add_http_hosts(const command_parts& p, std::vector<std::string>& names);
/// -p of those that look for a running pipeline.
void add_run_name(const command_parts& p, std::string& name);

void add_pipeline_file(const command_parts& p, std::string& file);
void add_report(const command_parts& p, std::string& file, const char* text);

// Options that stand for keys of the pipeline file.
void add_device(const command_parts& p, pipeline_options& keys);
void add_fps(const command_parts& p, pipeline_options& keys);
void add_size(const command_parts& p, pipeline_options& keys);
void add_mesh(const command_parts& p, pipeline_options& keys, const char* text);
void add_set(const command_parts& p, pipeline_options& keys);
/// All of them. `with_name`: -p is the name to run under.
void add_keys(const command_parts& p, pipeline_options& keys, bool with_name = true);

}  // namespace carousel::supervisor
