#pragma once
// Frames that a reader with several inputs cannot get whole any more.

#include <optional>

#include "ring/link.hpp"

namespace carousel::ring {

/// While the groups of a stage with several inputs are closed and opened, one after the other, one ring may
/// let a frame pass that another ring keeps for the stage, which then never gets it whole: ring and stage
/// would wait for each other. So the stage lets the frame pass at all of its inputs, WAIT -> SKIPPED. Any
/// process of the stage, when it looks for work. `ready` was read before the call, so that the passing is
/// older than the WAIT that is found. A death between two changes leaves the rest to the next process that
/// looks for work.
void let_partial_frames_pass(const shm::stage_block& stage, std::optional<link_ref> (&input)[shm::max_inputs],
                             const ready_map (&ready)[shm::max_inputs]) noexcept;

}  // namespace carousel::ring
