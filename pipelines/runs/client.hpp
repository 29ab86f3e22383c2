#pragma once
// The command line's functions for running pipelines: they choose a pipeline, check whether it still runs,
// make the table of `carousel ps`, and end a pipeline. Requests are sent by control/client.hpp. Errors:
// config_error if the user can correct the command (there is no such pipeline, or several run), shm_error if
// the supervisor does not do what is requested. Every wait has a timeout.

#include <string>

#include "control/ps_message.hpp"
#include "run/directory.hpp"

namespace carousel::supervisor {

/// Returns the pipeline of that name or run id, or, if `name` is empty, the only pipeline that runs (a run
/// whose supervisor was killed and whose stages continue is also counted). Waits up to wait_s for the
/// pipeline to start, counted from `since_ns` (0: from now on). If no pipeline can be chosen, throws a
/// config_error that lists the running pipelines.
[[nodiscard]] run::record choose_pipeline(const std::string& name, f64 wait_s, u64 since_ns = 0);
/// Like choose_pipeline(), for commands that only observe: they may also choose a run without a supervisor.
[[nodiscard]] run::record choose_watched(const std::string& name, f64 wait_s);

/// Returns false when the run is over. After a supervisor has died, the run counts as running while its
/// stages are alive, and for two seconds longer. If a successor takes the run over in that time, `r` becomes
/// the successor's record. The caller initialises `gone_since_ns` to 0 and passes the same variable to each
/// call. If `gone_since_ns` is not 0 when the run is over, the supervisor died.
[[nodiscard]] bool still_running(run::record& r, u64& gone_since_ns);

/// Returns the table of `carousel ps`; a value that is missing in the reply is shown as "-".
[[nodiscard]] std::string ps_table(const run::ps_answer& ps);

/// Asks the supervisor to end the pipeline, as Ctrl-C does, and waits until the pipeline has ended. Throws
/// shm_error if it has not ended within timeout_s.
void end_pipeline(const run::record& run, f64 timeout_s);

}  // namespace carousel::supervisor
