#pragma once
// What a caller asks of one run.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "spec/describe.hpp"
#include "spec/parameters.hpp"
#include "supervisor/plan/test_hooks.hpp"

namespace carousel::supervisor {

class other_hosts;  // supervisor/hosts/other_hosts.hpp

/// What belongs to one run and not to the pipeline.
struct run_options {
    std::vector<stage_description> stages;  ///< describe_stages(p); empty: run_pipeline asks them
    std::string report_file;                ///< JSON; "": none
    bool color = false;       ///< ANSI colours on stderr are wanted (a terminal, no NO_COLOR, no --no-color)
    u64 first = 0;            ///< begins with this frame: a run that was lost has delivered those below
    f64 seconds = 0;          ///< ends as by Ctrl-C after so long; 0: never
    bool keep_logs = false;   ///< DIR/logs outlives the run, until the next of that name or `carousel clean`
    bool background = false;  ///< nobody looks at stderr once all stages are ready: no progress line
    f64 wait_s = 0;           ///< waits so long for a running pipeline of the same name to end
    std::string http;         ///< where the run's web UI is served, as given; "": nowhere
    std::vector<std::string> http_hosts;  ///< further names of this machine in its address
    bool fresh = false;  ///< a living run of the name whose supervisor is dead is ended, not taken over
    std::vector<std::string> command_line;     ///< for the report
    std::optional<parameter_plan> parameters;  ///< of a part of a pipeline: the whole file's
    std::shared_ptr<other_hosts> hosts;        ///< null: the pipeline is on this host alone
    test_hooks hooks;                          ///< as the environment has them
};

}  // namespace carousel::supervisor
