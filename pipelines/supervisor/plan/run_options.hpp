#pragma once
// Options of one run.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "spec/describe.hpp"
#include "supervisor/plan/test_hooks.hpp"

namespace carousel::supervisor {

class run_extension;  // supervisor/engine/run_extension.hpp

/// Options that belong to one run and not to the pipeline.
struct run_options {
    std::vector<stage_description> stages;  ///< result of describe_stages(p); empty: run_pipeline calls it
    std::string report_file;                ///< JSON; "": none
    bool color = false;       ///< ANSI colours on stderr (a terminal, no NO_COLOR, no --no-color)
    u64 first = 0;            ///< the first frame; the frames below it were delivered by a run that was lost
    f64 seconds = 0;          ///< ends the run after this time in the same way as Ctrl-C; 0: never
    bool keep_logs = false;   ///< DIR/logs is kept after the run, until the next run of that name or
                              ///< `carousel clean`
    bool background = false;  ///< stderr is not read once all stages are ready: no progress line
    f64 wait_s = 0;           ///< time to wait for a running pipeline of the same name to end
    bool fresh = false;       ///< a running run of that name whose supervisor is dead is ended instead of
                              ///< taken over
    std::vector<std::string> command_line;     ///< for the report
    std::optional<parameter_plan> parameters;  ///< for a partition of a pipeline: the parameters of the whole
                                               ///< file
    std::vector<std::shared_ptr<run_extension>> extensions;
    test_hooks hooks;  ///< from the environment
};

}  // namespace carousel::supervisor
