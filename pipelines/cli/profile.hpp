#pragma once
// `carousel run --profile`: runs a pipeline under one of NVIDIA's profilers.
//   nsys        profiles the whole run: all stages on one timeline. A second carousel runs the pipeline as a
//               child of nsys; this process waits, forwards Ctrl-C to that run (not to nsys, which would end
//               the stages), and prints the report's path.
//   ncu:STAGE   profiles one stage and is started as that stage's prefix; it records counters of some kernel
//               launches from the middle of the run.

#include <string>
#include <vector>

#include "cli/start.hpp"

namespace carousel::supervisor {

struct profile_request {
    std::string tool;   ///< "nsys", "ncu"; "": none
    std::string stage;  ///< the stage that ncu profiles
};
/// Parses the value of --profile. Throws config_error if `text` is not a valid value.
[[nodiscard]] profile_request profile_from(const std::string& text);

/// Returns the path of the profiler, which is taken from CAROUSEL_NSYS or CAROUSEL_NCU, from PATH, or from
/// the folders of NVIDIA's packages. Throws a config_error that explains how to install the profiler.
[[nodiscard]] std::string profiler_path(const std::string& tool);

/// Returns the command that runs `words` (of `carousel run`, with --profile) under nsys. `report`: the
/// report's path without its extension.
[[nodiscard]] std::vector<std::string> nsys_command(const std::string& nsys, const std::string& report,
                                                    const std::string& carousel, const start_arguments& a);
/// Returns the ncu command as a stage's prefix, in the form that --set takes.
[[nodiscard]] std::string ncu_prefix(const std::string& ncu, const std::string& report,
                                     const std::string& stage);

/// Runs the pipeline `name` under nsys; returns its exit code.
int run_below_nsys(const start_arguments& a, const std::string& name, const cli_environment& env);

/// Waits until ncu has written its report and prints the report's path; prints that there is no report if
/// none appears in time.
void print_ncu_report(const std::string& report, const cli_environment& env);

}  // namespace carousel::supervisor
