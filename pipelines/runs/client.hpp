#pragma once
// What the command line needs from running pipelines: which one is meant, whether it continues, the table of
// `carousel ps`, ending it. Requests are sent by control/client.hpp. Errors: config_error for what the user
// can correct (no such pipeline, several of them), shm_error for a supervisor that does not do what is
// requested. Every wait has a timeout.

#include <string>

#include "control/ps_message.hpp"
#include "run/directory.hpp"

namespace carousel::supervisor {

/// Returns the pipeline of that name, or the only one that runs (a run whose supervisor was killed and whose
/// stages continue counts as another). Waits up to wait_s for it to start, from `since_ns` on (0: from now
/// on). Throws config_error that lists the running pipelines.
[[nodiscard]] run::record choose_pipeline(const std::string& name, f64 wait_s, u64 since_ns = 0);
/// The same for commands that only observe: they can also observe a run without a supervisor.
[[nodiscard]] run::record choose_watched(const std::string& name, f64 wait_s);

/// Returns false when the run is over. A supervisor that died may be replaced while stages are alive and for
/// two seconds longer: `r` then becomes the successor's record. `gone_since_ns`: 0 at first, then kept by the
/// caller between calls; not 0 when the run is over: its supervisor died.
[[nodiscard]] bool still_running(run::record& r, u64& gone_since_ns);

/// The table of `carousel ps`; a value that is missing in the reply is shown as "-".
[[nodiscard]] std::string ps_table(const run::ps_answer& ps);

/// Asks the supervisor to end the pipeline, as Ctrl-C does, and waits for its end. Throws shm_error if it has
/// not ended within timeout_s.
void end_pipeline(const run::record& run, f64 timeout_s);

}  // namespace carousel::supervisor
