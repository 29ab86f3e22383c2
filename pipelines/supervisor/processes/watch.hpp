#pragma once
// What is looked at in each tick. Which clock runs when, and who is late by it: clocks.hpp.

#include "supervisor/policy/clocks.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

void supervise_seats(process_table& t, u64 now);
/// No deadline counts time before now.
void restart_clocks(process_table& t, u64 now) noexcept;
/// What the process on the seat says of itself.
[[nodiscard]] process_view view_of(const process_table& t, const seat& s, u64 now) noexcept;
/// Is there a frame that the seat's process could take now?
[[nodiscard]] bool work_waits(const process_table& t, const seat& s) noexcept;
/// Since when the process on a seat has waited for room on a full disk, by its own word; 0: it doesn't.
[[nodiscard]] u64 full_disk_since_ns(const shm::control_block& c, const seat& s) noexcept;

/// Since when it has waited for another host: for that host's frames, or for its word that it has ours.
[[nodiscard]] u64 link_since_ns(const shm::control_block& c, const seat& s) noexcept;

}  // namespace carousel::supervisor
