#pragma once
// Functions of the command line for running pipelines: choosing one, checking whether it still runs, the
// table of `carousel ps`, ending it. Requests are sent by control/client.hpp. Errors: config_error for what
// the user can correct (no such pipeline, several of them), shm_error for a supervisor that does not do what
// is requested. Every wait has a timeout.

#include <string>

#include "control/ps_message.hpp"
#include "run/directory.hpp"

namespace carousel::supervisor {

/// Returns the pipeline of that name, or the only one that runs (a run whose supervisor was killed and whose
/// stages continue is also counted). Waits up to wait_s for the pipeline to start, counted from `since_ns`
/// (0: from now on). Throws config_error that lists the running pipelines.
[[nodiscard]] run::record choose_pipeline(const std::string& name, f64 wait_s, u64 since_ns = 0);
/// Like choose_pipeline(), for commands that only observe: they may also choose a run without a supervisor.
[[nodiscard]] run::record choose_watched(const std::string& name, f64 wait_s);

/// Returns false when the run is over. After a supervisor has died, the run counts as running while its
/// stages are alive, and for two seconds longer. If a successor takes the run over in that time, `r` becomes
/// the successor's record. `gone_since_ns` is 0 at first, and the caller keeps it between calls. If
/// `gone_since_ns` is not 0 when the run is over, the supervisor died.
[[nodiscard]] bool still_running(run::record& r, u64& gone_since_ns);

/// The table of `carousel ps`; a value that is missing in the reply is shown as "-".
[[nodiscard]] std::string ps_table(const run::ps_answer& ps);

/// Asks the supervisor to end the pipeline, in the same way as Ctrl-C, and waits for its end. Throws
/// shm_error if it has not ended within timeout_s.
void end_pipeline(const run::record& run, f64 timeout_s);

}  // namespace carousel::supervisor
