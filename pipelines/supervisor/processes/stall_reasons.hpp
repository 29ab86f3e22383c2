#pragma once
// Why a run may stand still. What this process knows by itself (states of seats, processes, delays) has
// priority over the control block, which may be what is broken. A reason that only the block gives is
// accepted only if it is possible: its clock began during the incarnation of the process, the process has a
// job in work, and its deadline has not passed.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Adds the present epochs and all incarnations that may still write, from what this process knows.
void fill_known_run(const process_table& t, ring::known_run& known);
/// Why nothing has to move now, from the states of the seats and from plausible words of the processes; "":
/// there is no reason.
[[nodiscard]] std::string stall_reason(const process_table& t, u64 now);

}  // namespace carousel::supervisor
