#pragma once
// State that exists only in the supervisor's memory, as JSON for its successor; all other state is in the
// control block. If the supervisor is killed, the file may be one event older than the block; where the two
// differ, the block is authoritative (adoption.hpp).

#include "core/described.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// The data in the file about one process.
struct process_record {
    u32 entry = shm::none, epoch = 0;
    i32 pid = 0;
    u64 start_time = 0, spawned_ns = 0, signalled_ns = 0, seen_dead_ns = 0;
    int user_signal = 0;
    bool by_hand = false, tool = false, by_supervisor = false, counted = false, judged = false;
    bool outside = false, restart_requested = false, deadline = false, was_ready = false;
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(process_record, (),
                      (entry, epoch, pid, start_time, spawned_ns, signalled_ns, seen_dead_ns, user_signal,
                       by_hand, tool, by_supervisor, counted, judged, outside, restart_requested, deadline,
                       was_ready))
using process_records = std::vector<std::vector<process_record>>;  ///< by seat

[[nodiscard]] nlohmann::json state_json(const process_table& t);
/// A value that differs whenever the result of state_json() differs.
[[nodiscard]] u64 fingerprint(const process_table& t) noexcept;
/// Restores what state_json() returned. Returns the data in the file about each seat's processes. Throws
/// json::exception if the file has a missing or wrong value; the caller continues without it.
[[nodiscard]] process_records restore_state(process_table& t, const nlohmann::json& state);

}  // namespace carousel::supervisor
