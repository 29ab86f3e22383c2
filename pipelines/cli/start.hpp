#pragma once
// What `run FILE` and `up FILE` share: everything is read and checked before anything is started. Shows CLI11
// (by command.hpp).

#include "cli/options.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

struct start_arguments {
    std::string file;
    pipeline_options keys;
    std::string report, http;
    std::vector<std::string> http_hosts;
    bool detach = false, in_background = false, keep_logs = false, no_color = false, dry_run = false,
         fresh = false;
    std::string wait, seconds, first;  ///< as they were written
    f64 wait_s = 0, seconds_s = 0;
    std::vector<std::string> words;  ///< the command line
};

/// All but the file, the keys and --wait.
void add_start_options(const command_parts& p, start_arguments& a);
/// Throws config_error: --wait, --seconds that are no times.
void read_times(start_arguments& a);

/// The file with the options that stand for keys. Throws config_error.
[[nodiscard]] pipeline read_with_overrides(const std::string& file, const pipeline_options& keys);
/// Below forty columns nothing could be told in order: a terminal that narrow breaks the lines itself.
[[nodiscard]] std::size_t columns_of(const cli_environment& env);

/// Of one run, without what belongs to the stages.
[[nodiscard]] run_options options_of(const start_arguments& a, const pipeline& p, const cli_environment& env);
/// What would run here (--dry-run): `p`, or a part of it.
void show_plan(const cli_environment& env, const pipeline& p, run_options o);

/// Runs the pipeline here or in the background, or shows what would run (--dry-run).
int run_or_show(const start_arguments& a, const cli_environment& env, const pipeline& p);

}  // namespace carousel::supervisor
