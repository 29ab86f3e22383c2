#pragma once
// `carousel chaos`: runs a pipeline, injects a plan of faults, ends it, and compares what its sinks received
// with the result of a run without faults (the reference run).

#include <nlohmann/json_fwd.hpp>

#include <ostream>
#include <string>
#include <vector>

#include "chaos/faults.hpp"
#include "chaos/pauses.hpp"
#include "core/json.hpp"
#include "os/event_loop.hpp"
#include "spec/options.hpp"

namespace carousel::supervisor::chaos {

struct settings {
    std::string file;       ///< pipeline file
    pipeline_options keys;  ///< the options --device, --size, --mesh, --fps and --set
    u64 seed = 0;
    f64 seconds = 30;          ///< 0: until `count` faults are injected
    u64 count = 0;             ///< number of faults; 0: until `seconds` have passed
    f64 rate = 2;              ///< faults per second; 0: the next fault follows as soon as all stages run
                               ///< again
    std::vector<fault> kinds;  ///< empty: all kinds that the pipeline can take
    std::string log;           ///< log of the faults, one JSON object per line; "": none
    bool spread = false;       ///< the pipeline is on several hosts, and victims are on all of them
    std::string token_folder;  ///< if `spread`: the folder in which the runs' tokens are created
    bool has_displays = true;  ///< some stage is a carousel-display, which writes pictures; the runs
                               ///< configure it to write none
    bool compare = true;       ///< compares with a fault-free run of the same number of frames
};

/// One injected fault.
struct done {
    u64 number = 0;
    fault kind = fault::kill;
    u64 time_ns = 0;
    std::string seat;  ///< "": the supervisor
    i32 pid = 0;
    u32 stage = ~0U;
    u64 responding_ns = 0;  ///< for fault::supervisor: the time at which the successor replied
};

struct outcome {
    std::vector<done> faults;  ///< a fault of kind `all` has one entry per stage, all with the same number
    std::vector<pause> pauses;
    nlohmann::json report, calm;  ///< reports of `carousel run`, with and without faults; null: none
    int exit_code = 0;
    u64 begun_ns = 0, ended_ns = 0;                    ///< of the faults
    std::vector<std::pair<std::string, f64>> spent_s;  ///< time per phase, in order
    std::vector<std::string> leaked;
    i64 gpu_mib_before = -1, gpu_mib_after = -1;  ///< -1: no GPU in it
    bool interrupted = false, ended_early = false;
    std::string folder;  ///< contains the runs' logs
};

/// Throws config_error or shm_error if the pipeline does not start or can't take the requested faults.
/// `progress`: receives a status line from time to time.
[[nodiscard]] outcome run_chaos(const settings& s, std::ostream& progress, bool on_terminal);

// report.cpp
/// Returns the counts, percentiles and pauses by kind of fault, and the verdict under "passed" with the
/// reasons under "failures".
[[nodiscard]] nlohmann::json make_report(const settings& s, const outcome& o);
/// The same as a text table.
[[nodiscard]] std::string report_text(const nlohmann::json& report);

// Merges the report of a run over several hosts into the form of a single run: counts are added up, stages of
// other hosts are named HOST/STAGE, and times of their clocks are converted to this host's clock.

/// Merges the report of a `carousel run` with "hosts"; any other report is returned unchanged.
[[nodiscard]] nlohmann::json over_hosts(nlohmann::json report);

}  // namespace carousel::supervisor::chaos
