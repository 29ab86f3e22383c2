#pragma once
// Parts of a control block that are written once and that no process acts on: names and figures for display,
// descriptions of memory that travel by message, sets of parameters that no frame can need; and, of what the
// supervisor knows by itself, whether a seat is paused and when a process started. The supervisor's copy is
// authoritative, so they are written back in place, however many bits have changed. What a process may have
// acted on meanwhile (a count, a window, a flag, the set of a frame that can still be made) is left to
// check_static(): the block is then rebuilt.
//
// Caller: the supervisor's thread only, at any time. Plain bytes that no other process writes: a concurrent
// reader sees each byte as it was or as it is. If the repair is cut off between two of them, the next check
// finds the rest.

#include <string>
#include <vector>

#include "ring/check/block_check.hpp"

namespace carousel::ring {

/// Writes back what differs from `made` and what no process acts on. Returns the names of the words that were
/// wrong. Sources read their sets from the newest to the first that counts for the oldest frame:
/// `known.tails` gives the frames that can still be made.
[[nodiscard]] std::vector<std::string> repair_static(shm::control_block& c, const shm::control_block& made,
                                                     const known_run& known);

/// Writes back the start times in `known` of processes that are ready: each word belongs to its process,
/// which writes it once, before it is ready. Returns the names of the words that were wrong.
[[nodiscard]] std::vector<std::string> repair_start_times(shm::control_block& c,
                                                          const shm::control_block& made,
                                                          const known_run& known);

/// The number of sets, from the newest one back, that a source which makes frame `oldest` or a later one can
/// read.
[[nodiscard]] u32 sets_in_use(const shm::parameter_box& made, u64 oldest) noexcept;

}  // namespace carousel::ring
