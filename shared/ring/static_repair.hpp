#pragma once
// Parts of a control block that are written once and that no process acts on: names and figures that are
// shown, descriptions of memory that travel by message, sets of parameters that no frame can need; and of
// what the supervisor knows by itself whether a seat is held, and since when a process runs. The supervisor's
// copy says for certain what they were, so they are written back in place, however many bits have changed.
// What a process may have acted on meanwhile (a count, a window, a flag, the set of a frame that can still be
// made) is left to check_static(): the block is made anew then.
//
// Who may call: the supervisor's thread alone, any time. Plain bytes that nobody else writes: whoever reads
// them meanwhile sees each as it was or as it is. Cut off between two of them, the next look finds the rest.

#include <string>
#include <vector>

#include "ring/block_check.hpp"

namespace carousel::ring {

/// Writes back what differs from `made` and is nobody's to act on. Returns the names of what was wrong.
/// Sources read their sets from the newest to the first that counts for the oldest frame: `known.tails` says
/// which frames can still be made.
[[nodiscard]] std::vector<std::string> repair_static(shm::control_block& c, const shm::control_block& made,
                                                     const known_run& known);

/// Writes back the start times that `known` says of processes that are ready: each word is its process's own,
/// which writes it once, before it is ready. Returns the names of what was wrong.
[[nodiscard]] std::vector<std::string> repair_start_times(shm::control_block& c,
                                                          const shm::control_block& made,
                                                          const known_run& known);

/// How many sets, from the newest one back, a source can read that makes frame `oldest` or a later one.
[[nodiscard]] u32 sets_in_use(const shm::parameter_box& made, u64 oldest) noexcept;

}  // namespace carousel::ring
