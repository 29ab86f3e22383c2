#pragma once
// What lives in the supervisor's memory only, as JSON for the supervisor after it. Everything else that one
// needs is in the control block. The file may be one event older than the block when a supervisor is killed;
// where the two differ, the block is right (adoption.hpp).

#include "core/json.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

[[nodiscard]] nlohmann::json state_json(const process_table& t);
/// Differs when state_json() does.
[[nodiscard]] u64 fingerprint(const process_table& t) noexcept;
/// Takes over what state_json() gave. Returns what it says of each seat's processes, by seat. Throws
/// json::exception on a file that is not ours; the caller goes on without it.
[[nodiscard]] nlohmann::json restore_state(process_table& t, const nlohmann::json& state);

}  // namespace carousel::supervisor
