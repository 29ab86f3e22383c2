#pragma once
// Functions that `run FILE` and `up FILE` share. Everything is read and checked before any process is
// started. Includes CLI11 (by command.hpp).

#include <ostream>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "core/types.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

struct start_arguments {
    std::string file;
    pipeline_options keys;
    std::string report, http;
    std::vector<std::string> http_hosts;
    bool detach = false, in_background = false, keep_logs = false, no_color = false, dry_run = false,
         fresh = false, quiet = false;
    std::string wait, seconds, first;  ///< as given
    f64 wait_s = 0, seconds_s = 0;
    std::vector<std::string> words;  ///< the command line
};

/// Adds all options except the file, the keys and --wait.
void add_start_options(const command_parts& p, start_arguments& a);
/// Throws config_error if --wait or --seconds is not a time.
void read_times(start_arguments& a);

/// Reads the file and applies the options that override keys. Throws config_error.
[[nodiscard]] pipeline read_with_overrides(const std::string& file, const pipeline_options& keys);
/// Returns the width for tables: at least 40 columns, because narrower tables would be unreadable (a narrower
/// terminal wraps the lines).
[[nodiscard]] std::size_t columns_of(const cli_environment& env);

/// Returns the options of one run, without the stages' descriptions.
[[nodiscard]] run_options options_of(const start_arguments& a, const pipeline& p, const cli_environment& env);
/// Prints what would run on this host (--dry-run). `p` is the pipeline, or the part of it that runs on this
/// host.
void show_plan(const cli_environment& env, const pipeline& p, run_options o);

/// For a pipeline whose stages are on several hosts: runs this host's part and the coordinator of all hosts
/// (supervisor/hosts, an extra), or prints what would run. A build without that extra throws config_error
/// (no_hosts.cpp).
int run_over_hosts(const start_arguments& a, const cli_environment& env, const pipeline& whole);

/// Runs the pipeline in the foreground or background, or prints what would run (--dry-run).
int run_or_show(const start_arguments& a, const cli_environment& env, const pipeline& p);

// Runs a pipeline in the background: starts the same program again in its own session, so that it survives
// the terminal.
// Called by the `carousel` program for `up -d` and `run -d`, while it holds no lock and has started no
// process. The child's stdout and stderr are a pipe to the caller until the caller exits; after that the
// child continues without a reader, and its output is in its run's logs. If Ctrl-C (INT, TERM, HUP) arrives
// during the wait, the child ends as a run in the foreground would.

struct detach_request {
    std::string name;                ///< of the pipeline
    std::vector<std::string> words;  ///< command line of the child, without the program
    std::string command;  ///< own_command(): the command by which the user called this program, for hints
    f64 patience_s = 60;  ///< after this time, the caller returns and lists the stages that are not ready yet
};

/// Starts the child and waits until every stage is ready or the child has ended. Returns 0 if the pipeline
/// runs (or has run to its end); the child's exit code if it failed, with its last lines on `err`; 1 if a
/// stage was not ready in time (the pipeline continues); 128+N after signal N. Throws shm_error if the child
/// can't be started.
int run_in_background(const detach_request& d, std::ostream& out, std::ostream& err);

}  // namespace carousel::supervisor
