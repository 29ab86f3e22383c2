#pragma once
// Finds the reason why a run makes no progress. The data in this process (states of seats, processes, delays)
// has priority over the control block, which may itself be damaged. A reason that comes only from the block
// is accepted only if it is plausible: its clock began during the incarnation of the process, the process has
// a job in progress, and the deadline has not passed.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Adds the present epochs and all incarnations that may still write, from the data in this process.
void fill_known_run(const process_table& t, ring::known_run& known);
/// Returns the reason why no frame needs to advance now, from the states of the seats and from plausible
/// words of the processes; "": there is no reason.
[[nodiscard]] std::string stall_reason(const process_table& t, u64 now);

}  // namespace carousel::supervisor
