#pragma once
// Finds a frame that is lost on this host although another host still has it.

#include <functional>
#include <optional>

#include "ledger/ledger.hpp"
#include "shm/control_block.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Returns the lowest frame that a sink still has to deliver if no ring of that sink contains the frame any
/// more. `made` holds the static parts of the block `c`; `find_undelivered` reads the ledgers. The processes
/// may run during the call. Throws what `find_undelivered` throws.
[[nodiscard]] std::optional<telemetry::undelivered_frame> find_lost_frame(
    const run_setup& s, const shm::control_block& made, const shm::control_block& c,
    const std::function<telemetry::undelivered_frame()>& find_undelivered);

}  // namespace carousel::supervisor
