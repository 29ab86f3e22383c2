#pragma once
// The command line of `carousel`. Exit codes: 0; 1 a required stage failed; 2 usage or configuration; 3 no device, or a machine
// that can't run Carousel; 70 and up see core/errors.hpp. Usage errors are one sentence on stderr (with --json: an object on
// stdout).

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "bench/commands.hpp"
#include "cli/new_stage.hpp"
#include "runs/clean.hpp"
#include "spec/options.hpp"
#include "supervisor/engine/run.hpp"

namespace carousel::supervisor {

/// What the command line works with; tests bring their own.
struct cli_environment {
    std::ostream& out;
    std::ostream& err;
    bool out_is_terminal = false, err_is_terminal = false;
    int (*run)(const pipeline&, const run_options&) = nullptr;
    clean_places places = {};  ///< for `clean`
    std::size_t columns = 0;   ///< of the terminal that `out` is; 0: it is none
};

/// Everything that any subcommand takes.
struct cli_arguments {
    std::string command;
    std::string file;  ///< run, validate, graph
    pipeline_options keys;
    std::string report;
    bool no_color = false, dry_run = false, json = false, fresh = false;
    bool detach = false, in_background = false, keep_logs = false;  ///< run, up
    bool follow = false, timestamps = false;                        ///< logs
    std::string lines, since;
    std::string format = "dot", shell;                              ///< graph; completion
    bool live = false, once = false, image = false;                 ///< graph; top
    f64 interval_s = 1;
    f64 wait_s = 0, seconds = 0, timeout_s = 30;
    u64 trace_frames = 0;  ///< trace: ends after so many; 0: by time
    u64 chaos_seed = 0, chaos_count = 0;                            ///< chaos; seed 0: of the clock
    f64 chaos_rate = 2;
    std::string chaos_faults, chaos_log;
    bool no_compare = false;
    std::string pipeline;  ///< -p of those that talk to a running one
    std::vector<std::string> stages;
    std::vector<std::string> assignments;  ///< set: KEY=VALUE
    bool reset = false;                    ///< set
    std::string signal = "KILL";
    std::string fault = "hang";  ///< inject
    std::string http;  ///< run: "" no page; view
    std::string profile;  ///< run: nsys, ncu:STAGE
    bench::bench_words bench;
    new_stage_words new_stage;
    std::vector<std::string> words;  ///< the command line, for the report
};

/// `words` without the program's name. Never throws; says what is wrong and returns the exit code.
int cli_main(const std::vector<std::string>& words, const cli_environment& env) noexcept;

// The subcommands; each returns an exit code or throws carousel::error.
int cli_run(const cli_arguments& a, const cli_environment& env);
int cli_validate(const cli_arguments& a, const cli_environment& env);
int cli_ps(const cli_arguments& a, const cli_environment& env);
/// `up`: of a pipeline file, else of stages
int cli_up(const cli_arguments& a, const cli_environment& env);
int cli_logs(const cli_arguments& a, const cli_environment& env);
int cli_graph(const cli_arguments& a, const cli_environment& env);
int cli_top(const cli_arguments& a, const cli_environment& env);
int cli_completion(const cli_arguments& a, const cli_environment& env);
/// kill, inject, stop, cont, restart, down, up
int cli_tell(const cli_arguments& a, const cli_environment& env);
int cli_set(const cli_arguments& a, const cli_environment& env);
int cli_chaos(const cli_arguments& a, const cli_environment& env);
int cli_trace(const cli_arguments& a, const cli_environment& env);
int cli_view(const cli_arguments& a, const cli_environment& env);
int cli_doctor(const cli_arguments& a, const cli_environment& env);
int cli_clean(const cli_arguments& a, const cli_environment& env);
int cli_new(const cli_arguments& a, const cli_environment& env);
/// Returns only when it fails: the process becomes carousel-bench.
int cli_bench(const cli_arguments& a, const cli_environment& env);

/// Throws what a supervisor's refusal says.
void require_well(const nlohmann::json& reply, const std::string& pipeline);

/// Colours are wanted on a stream: a terminal, no --no-color, no NO_COLOR.
[[nodiscard]] bool wants_color(bool terminal, bool no_color) noexcept;

}  // namespace carousel::supervisor
