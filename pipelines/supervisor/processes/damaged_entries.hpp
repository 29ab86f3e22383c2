#pragma once
// Entries that were damaged while a run had no supervisor: the supervisor that takes the run over determines
// the owner of each entry, or reports that it cannot.

#include <string>

#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/seat_state.hpp"

namespace carousel::supervisor {

/// Repairs each entry with one flipped bit (ring/check/repair.hpp) before the entry is used in any
/// other way. `remembered`: the processes that the dead supervisor knew. If the owner of an entry cannot be
/// determined, this is logged, and each process of this run that may be the owner is killed; the word is not
/// repaired, so the block is rebuilt.
void repair_adopted_entries(process_table& t, const process_records& remembered, const std::string& run_id);

/// Restores start times that differ from what the dead supervisor recorded for the process with that entry,
/// epoch and pid: a living process that cannot be found by its start time would be treated as dead.
void repair_start_times(process_table& t, const process_records& remembered);

}  // namespace carousel::supervisor
