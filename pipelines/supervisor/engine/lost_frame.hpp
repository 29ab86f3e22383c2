#pragma once
// A frame that is lost on this host although another host still has it.

#include <functional>
#include <optional>

#include "shm/control_block.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "telemetry/frame_claims.hpp"

namespace carousel::supervisor {

/// Returns the lowest frame that a sink owes if no ring of that sink has it any more. `made` holds the static
/// parts of the block `c`; `first_owed` reads the ledgers. The processes may run meanwhile. Throws what
/// `first_owed` throws.
[[nodiscard]] std::optional<telemetry::owed_frame> find_lost_frame(
    const run_setup& s, const shm::control_block& made, const shm::control_block& c,
    const std::function<telemetry::owed_frame()>& first_owed);

}  // namespace carousel::supervisor
