#pragma once
// Why a run may stand still. What this process knows by itself (states of seats, processes, delays) goes
// before what the control block says, since that may be what is broken. A reason that only the block gives is
// believed as far as it is possible: its clock began in the time of the process, a job of that process is in
// work, and its own deadline has not passed.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Adds the present epochs and all incarnations that may still write, from what this process knows.
void fill_known_run(const process_table& t, ring::known_run& known);
/// Why nothing has to move now, as a stage's state or its process says and as far as that can be believed;
/// "": nobody has a reason.
[[nodiscard]] std::string stall_reason(const process_table& t, u64 now);

}  // namespace carousel::supervisor
