#pragma once
// Talks to a running pipeline: one JSON message each way over its control socket (SOCK_SEQPACKET, DIR/control.sock).
//   {"command":"ps"}                                   -> {"ok":true,"pipeline":{...},"stages":[...],"links":[...]}
//   {"command":"kill","stage":"fragment.1","signal":9} -> {"ok":true,"message":"..."} or {"ok":false,"message":"...","code":2}
// Errors: config_error for what the user can mend (no such pipeline, several of them), shm_error for a supervisor that does not
// answer. Nothing waits without a limit.

#include <nlohmann/json.hpp>
#include <string>

#include "run/directory.hpp"

namespace carousel::supervisor {

/// The pipeline that is meant: of that name, or the only one that runs (one whose supervisor was killed and whose stages go on
/// counts). Waits up to wait_s for it to come. Throws config_error that lists what runs.
[[nodiscard]] run::record choose_pipeline(const std::string& name, f64 wait_s);
/// The same for those who only look: one without a supervisor can be watched, too.
[[nodiscard]] run::record choose_watched(const std::string& name, f64 wait_s);

/// One request, one reply; by this run (its run_id goes with the request) and no other of its name. Throws shm_error: nobody listens (waits up to wait_s for that), no answer in timeout_s, or one that is
/// no JSON object.
[[nodiscard]] nlohmann::json ask_pipeline(const run::record& run, const nlohmann::json& request, f64 wait_s = 0,
                                          f64 timeout_s = 10);

/// False when the run is over. A supervisor that is gone without having tidied up may get a successor, as long as stages live and
/// two seconds longer: `r` becomes that one's record. `gone_since_ns`: 0 at first, then the caller's memory between two calls; not 0 at the end: it died.
[[nodiscard]] bool goes_on(run::record& r, u64& gone_since_ns);

/// The table of `carousel ps`, from the reply to "ps"; what is missing in it shows as "-".
[[nodiscard]] std::string ps_table(const nlohmann::json& reply);

/// Asks the supervisor to end the pipeline, as Ctrl-C does, and waits for its end. Throws shm_error when it has not ended in
/// timeout_s.
void end_pipeline(const run::record& run, f64 timeout_s);

}  // namespace carousel::supervisor
