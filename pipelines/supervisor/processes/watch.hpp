#pragma once
// The checks of each tick. clocks.hpp defines which clock runs when, and which process is late.

#include "supervisor/policy/clocks.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

void supervise_seats(process_table& t, u64 now);
/// After this call no deadline counts time before now.
void restart_clocks(process_table& t, u64 now) noexcept;
/// The state that the process on the seat has published.
[[nodiscard]] process_view view_of(const process_table& t, const seat& s, u64 now) noexcept;
/// True if there is a frame that the seat's process could begin now.
[[nodiscard]] bool work_waits(const process_table& t, const seat& s) noexcept;
/// The time since which the process on a seat has waited for room on a full disk, as it reports; 0: it does
/// not wait.
[[nodiscard]] u64 full_disk_since_ns(const shm::control_block& c, const seat& s) noexcept;

/// The time since which the process has waited for another host: for that host's frames, or for the
/// acknowledgement of its own; 0: it does not wait.
[[nodiscard]] u64 link_since_ns(const shm::control_block& c, const seat& s) noexcept;

}  // namespace carousel::supervisor
