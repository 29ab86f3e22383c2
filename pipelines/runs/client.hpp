#pragma once
// What the command line needs of running pipelines: which one is meant, whether it goes on, the table of
// `carousel ps`, its end. A run is asked by run/client.hpp. Errors: config_error for what the user can mend
// (no such pipeline, several of them), shm_error for a supervisor that does not do as it is told. Nothing
// waits without a limit.

#include <string>

#include "run/directory.hpp"
#include "run/ps_message.hpp"

namespace carousel::supervisor {

/// The pipeline that is meant: of that name, or the only one that runs (one whose supervisor was killed and
/// whose stages go on counts). Waits up to wait_s for it to come, from `since_ns` on (0: from now on). Throws
/// config_error that lists what runs.
[[nodiscard]] run::record choose_pipeline(const std::string& name, f64 wait_s, u64 since_ns = 0);
/// The same for those who only look: one without a supervisor can be watched, too.
[[nodiscard]] run::record choose_watched(const std::string& name, f64 wait_s);

/// False when the run is over. A supervisor that is gone without having tidied up may get a successor, as
/// long as stages live and two seconds longer: `r` becomes that one's record. `gone_since_ns`: 0 at first,
/// then the caller's memory between two calls; not 0 at the end: it died.
[[nodiscard]] bool still_running(run::record& r, u64& gone_since_ns);

/// The table of `carousel ps`; what is missing in the answer shows as "-".
[[nodiscard]] std::string ps_table(const run::ps_answer& ps);

/// Asks the supervisor to end the pipeline, as Ctrl-C does, and waits for its end. Throws shm_error when it
/// has not ended in timeout_s.
void end_pipeline(const run::record& run, f64 timeout_s);

}  // namespace carousel::supervisor
