#pragma once
// Repairs parts of a control block that are written once and that no process acts on: names and figures for
// display, descriptions of memory that are also sent by message, and parameter sets that no frame can need.
// From the supervisor's own data it also repairs whether a seat is paused and when a process started. The
// supervisor's copy is authoritative, so these parts are written back in place, regardless of how many bits
// have changed. Data that a process may have acted on in the meantime (a count, a window, a flag, the set of
// a frame that can still be made) is left to check_static(), after which the block is rebuilt.
//
// Called only by the supervisor's thread, at any time. The data is plain bytes that no other process writes:
// a concurrent reader reads each byte with its old or its new value. If the repair is interrupted between two
// bytes, the next check finds the remaining ones.

#include <string>
#include <vector>

#include "ring/check/block_check.hpp"

namespace carousel::ring {

/// Writes back the parts that differ from `made` and that no process acts on. Returns the names of the words
/// that were wrong. Sources read their sets from the newest one back to the first that applies to the oldest
/// frame: `known.tails` determines the frames that can still be made.
[[nodiscard]] std::vector<std::string> repair_static(shm::control_block& c, const shm::control_block& made,
                                                     const known_run& known);

/// Writes back the start times in `known` of processes that are ready: each word belongs to its process,
/// which writes it once before it is ready. Returns the names of the words that were wrong.
[[nodiscard]] std::vector<std::string> repair_start_times(shm::control_block& c,
                                                          const shm::control_block& made,
                                                          const known_run& known);

/// The number of sets, from the newest one back, that a source can read when it makes frame `oldest` or a
/// later one.
[[nodiscard]] u32 sets_in_use(const shm::parameter_box& made, u64 oldest) noexcept;

}  // namespace carousel::ring
