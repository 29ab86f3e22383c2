#pragma once
// Entries that were damaged while nobody supervised a run: the one who takes it over tells whose they are, or
// says that nothing does.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// Mends each entry that is damaged by one bit (ring/entry_repair.hpp) before it is looked at. `remembered`:
/// what the dead supervisor knew of the processes, by seat. Where nothing says whose an entry is, that is
/// said, and whatever process of this run may be its is ended; the word stays as it is, so the block is made
/// anew.
void repair_adopted_entries(process_table& t, const nlohmann::json& remembered, const std::string& run_id);

/// Writes back start times that are not what the dead supervisor knew of the process with that entry, epoch
/// and pid: a living process that isn't found by its own would be taken for a dead one.
void repair_start_times(process_table& t, const nlohmann::json& remembered);

}  // namespace carousel::supervisor
