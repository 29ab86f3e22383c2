#pragma once
// The checks of each tick. clocks.hpp defines which clock runs when, and which process is late.

#include "supervisor/policy/clocks.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

void supervise_seats(process_table& t, u64 now);
/// After this call no deadline counts time before the call.
void restart_clocks(process_table& t, u64 now) noexcept;
/// The state that the process on the seat has published.
[[nodiscard]] process_view view_of(const process_table& t, const seat& s, u64 now) noexcept;
/// True if there is a frame that the seat's process could begin now.
[[nodiscard]] bool work_waits(const process_table& t, const seat& s) noexcept;
/// Returns the time at which the process on a seat began to wait for room on a full disk, as the process has
/// reported; 0: the process does not wait.
[[nodiscard]] u64 full_disk_since_ns(const shm::control_block& c, const seat& s) noexcept;

/// Returns the time at which the process began to wait for another host: for frames of that host, or for the
/// acknowledgement of frames that were sent to that host; 0: the process does not wait.
[[nodiscard]] u64 link_since_ns(const shm::control_block& c, const seat& s) noexcept;

// Finds the reason why a run makes no progress. The data in this process (states of seats, processes, delays)
// has priority over the control block, which may itself be damaged. A reason that comes only from the block
// is accepted only if it is plausible. This means that the clock of the reason began during the incarnation
// of the process, that the process has a job in progress, and that the deadline has not passed.

/// Adds to `known` the present epochs of the seats, and all incarnations that may still write. Uses only data
/// in this process, not the control block.
void fill_known_run(const process_table& t, ring::known_run& known);
/// Returns the reason why no frame advances although the run is sound; "": there is no such reason. The
/// reason comes from the states of the seats and from plausible words of the processes.
[[nodiscard]] std::string stall_reason(const process_table& t, u64 now);

}  // namespace carousel::supervisor
