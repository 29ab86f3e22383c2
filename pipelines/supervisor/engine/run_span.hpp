#pragma once
// The time that a run's frames took, from the words that the stages write themselves. The supervisor checks
// the block only at each tick of 20 ms: a short run begins and ends between two of them.
//
// Both functions only read the block. A word that a crash left unwritten, or that is damaged, is outside
// `earliest` .. `latest` (CLOCK_MONOTONIC) and is ignored.

#include "shm/control_block.hpp"

namespace carousel::supervisor {

/// When a source claimed the first frame of the run; call it as soon as a frame is committed, while the
/// words of the first frame are there. `latest` if no word says when.
[[nodiscard]] u64 first_frame_ns(const shm::control_block& c, u64 earliest, u64 latest) noexcept;
/// When the newest frame was committed by a sink, after each sink has committed its frames. `latest` if no
/// word says when.
[[nodiscard]] u64 last_delivery_ns(const shm::control_block& c, u64 earliest, u64 latest) noexcept;

}  // namespace carousel::supervisor
