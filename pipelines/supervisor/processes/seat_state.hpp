#pragma once
// State that exists only in the supervisor's memory, as JSON for its successor; all other state is in the
// control block. If the supervisor is killed, the file may be one event older than the block; where the two
// differ, the block is right (adoption.hpp).

#include "core/json.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

[[nodiscard]] nlohmann::json state_json(const process_table& t);
/// A value that differs when the result of state_json() does.
[[nodiscard]] u64 fingerprint(const process_table& t) noexcept;
/// Restores what state_json() returned. Returns what it contains about each seat's processes, by seat. Throws
/// json::exception if the file is not ours; the caller continues without it.
[[nodiscard]] nlohmann::json restore_state(process_table& t, const nlohmann::json& state);

}  // namespace carousel::supervisor
