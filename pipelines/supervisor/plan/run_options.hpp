#pragma once
// Options of one run, and settings that only tests make.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "ring/topology.hpp"
#include "spec/describe.hpp"

namespace carousel::supervisor {

// Settings by which a test quickly creates a situation that otherwise takes hours, or needs a GPU or a
// process that hangs in the kernel. The command line reads them once; the code that uses them gets them as an
// argument.

struct test_hooks {
    /// CAROUSEL_TEST_KILL_DELAY_MS: unwanted processes remain alive for this time, like a process in state D
    u64 kill_delay_ns = 0;
    /// CAROUSEL_TEST_KEEP_RECORDS: newest records kept in each sink's ledger; older ones are folded
    /// (ledger/ledger_fold.hpp)
    std::optional<u64> kept_records;
    /// CAROUSEL_TEST_COUNTERS=near-their-ends: a short run reaches counter values that otherwise take hours
    ring::first_counters counters;
    bool depth_on_cpu = false;  ///< CAROUSEL_TEST_DEPTH_ON_CPU: depths are planned and chosen as on a GPU
    bool mps_on_cpu = false;    ///< CAROUSEL_TEST_MPS_ON_CPU: stages on the CPU are clients of an MPS domain

    /// CAROUSEL_TEST_OVERRUNS_ANYWHERE: overrun-output is accepted even if no guard covers the target
    bool overruns_anywhere = false;
    /// CAROUSEL_TEST_SCRIBBLES_ANYWHERE: scribble-control and scribble-input are also accepted if no guard
    /// covers the target
    bool scribbles_anywhere = false;
    bool audits_at_deaths_alone = false;  ///< CAROUSEL_TEST_AUDITS_AT_DEATHS_ALONE: no audit once per second

    [[nodiscard]] static test_hooks of_environment();
};

// Options of one run.

class run_extension;  // supervisor/engine/run_extension.hpp

/// Options that belong to one run and not to the pipeline.
struct run_options {
    std::vector<stage_description> stages;  ///< result of describe_stages(p); empty: run_pipeline calls it
    std::string report_file;                ///< JSON; "": none
    bool color = false;  ///< ANSI colours on stderr (a terminal, no NO_COLOR, no --no-color)
    /// the first frame of the run; the frames below it were delivered by an earlier run that was lost
    u64 first = 0;
    bool first_is_checkpoint = false;  ///< a new run begins at its newest checkpoint instead
    f64 seconds = 0;                   ///< ends the run after this time, as Ctrl-C does; 0: never
    /// DIR/logs is kept after the run, until the next run of that name starts or `carousel clean` is called
    bool keep_logs = false;
    /// no progress line is printed, because stderr is not read once all stages are ready
    bool background = false;
    bool quiet = false;  ///< only warnings and errors are printed on stderr
    f64 wait_s = 0;      ///< time to wait for a running pipeline of the same name to end
    /// if a run of that name has lost its supervisor, the run is ended instead of taken over
    bool fresh = false;
    std::vector<std::string> command_line;  ///< for the report
    /// the parameters of the whole file, if this run is a partition of a pipeline
    std::optional<parameter_plan> parameters;
    std::vector<std::shared_ptr<run_extension>> extensions;
    test_hooks hooks;  ///< from the environment
};

}  // namespace carousel::supervisor
