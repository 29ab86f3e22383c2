#pragma once
// `carousel run --profile`: NVIDIA's profilers by one word.
//   nsys        in front of the whole run: all stages on one timeline. A second carousel runs the pipeline
//               below it; this one waits, hands Ctrl-C on to that run (not to nsys, which would end the
//               stages), and says where the report lies.
//   ncu:STAGE   in front of that one stage, as its prefix: some launches from the middle of the run, counters
//               of each.

#include <string>
#include <vector>

#include "cli/start.hpp"

namespace carousel::supervisor {

struct profile_request {
    std::string tool;   ///< "nsys", "ncu"; "": none
    std::string stage;  ///< of ncu
};
/// Throws config_error for what is no profile.
[[nodiscard]] profile_request profile_from(const std::string& text);

/// The profiler's path: CAROUSEL_NSYS or CAROUSEL_NCU, PATH, where NVIDIA's packages put it. Throws
/// config_error that says how to get it.
[[nodiscard]] std::string profiler_path(const std::string& tool);

/// The command that runs `words` (of `carousel run`, with --profile) below nsys. `report`: the report's path
/// without its ending.
[[nodiscard]] std::vector<std::string> nsys_command(const std::string& nsys, const std::string& report,
                                                    const std::string& carousel, const start_arguments& a);
/// The same for a stage's prefix, as --set takes it.
[[nodiscard]] std::string ncu_prefix(const std::string& ncu, const std::string& report,
                                     const std::string& stage);

/// Runs the pipeline `name` below nsys; its exit code.
int run_below_nsys(const start_arguments& a, const std::string& name, const cli_environment& env);

/// Says where ncu's report lies, once ncu has written it; or that it has written none.
void print_ncu_report(const std::string& report, const cli_environment& env);

}  // namespace carousel::supervisor
