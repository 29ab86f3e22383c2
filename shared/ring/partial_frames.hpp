#pragma once
// Frames that a reader with several inputs can no longer get at all of its inputs.

#include <optional>

#include "ring/link.hpp"

namespace carousel::ring {

/// While the groups of a stage with several inputs are closed and opened, one after the other, one ring may
/// let a frame bypass the stage while another ring keeps the same frame for it. The stage then never gets
/// that frame at all inputs, and the ring and the stage would wait for each other. So the stage lets the
/// frame bypass it at all of its inputs, WAIT -> SKIPPED. Called by any process of the stage when it searches
/// for work. `ready` was read before the call, so the frame had bypassed the stage before the WAIT was read.
/// A crash between two changes leaves the remaining ones to the next process that searches for work.
void let_partial_frames_pass(const shm::stage_block& stage, std::optional<link_ref> (&input)[shm::max_inputs],
                             const ready_map (&ready)[shm::max_inputs]) noexcept;

}  // namespace carousel::ring
