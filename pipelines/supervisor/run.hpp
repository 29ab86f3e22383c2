#pragma once
// Runs a pipeline to its end: the one entrance to the engine (keeper, spawning, reclaiming, restarts, report).

#include <string>
#include <vector>

#include "supervisor/describe.hpp"
#include "supervisor/pipeline_file.hpp"

namespace carousel::supervisor {

/// What belongs to one run and not to the pipeline.
struct run_options {
    std::vector<stage_description> stages;  ///< describe_stages(p); empty: run_pipeline asks them
    std::string report_file;                ///< JSON; "": none
    bool color = false;                     ///< ANSI colours on stderr are wanted (a terminal, no NO_COLOR, no --no-color)
    f64 seconds = 0;                        ///< ends as by Ctrl-C after so long; 0: never
    bool keep_logs = false;                 ///< DIR/logs outlives the run, until the next of that name or `carousel clean`
    bool background = false;                ///< nobody looks at stderr once all stages are ready: no progress line
    f64 wait_s = 0;                         ///< waits so long for a running pipeline of the same name to end
    std::string http;                       ///< where the run's page is served, as given; "": nowhere
    bool fresh = false;                     ///< a living run of the name whose supervisor is dead is ended, not taken over
    std::vector<std::string> command_line;  ///< for the report
};

/// Starts the pipeline, or takes over a living run of that name whose supervisor was killed, if it is the same pipeline
/// (run_identity.hpp). Returns the exit code; throws carousel::error for what stands in the way of a start.
int run_pipeline(const pipeline& p, const run_options& o);

}  // namespace carousel::supervisor
