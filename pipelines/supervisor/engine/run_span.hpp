#pragma once
// The duration of a run's frames, from the timestamps that the stages write themselves. The supervisor checks
// the block only at each tick of 20 ms, and a short run begins and ends between two ticks.
//
// Both functions only read the block. A word that a crash left unwritten, or that is damaged, is outside
// `earliest` .. `latest` (CLOCK_MONOTONIC) and is ignored.

#include "shm/control_block.hpp"

namespace carousel::supervisor {

/// Time at which a source claimed the first frame of the run. Returns `latest` if the control block does not
/// store the time. Returns `latest` if the control block does not store the time.
[[nodiscard]] u64 first_frame_ns(const shm::control_block& c, u64 earliest, u64 latest) noexcept;
/// Time at which a sink committed the newest frame. Returns `latest` if no word contains the time. Returns
/// `latest` if no word has the time.
[[nodiscard]] u64 last_delivery_ns(const shm::control_block& c, u64 earliest, u64 latest) noexcept;

}  // namespace carousel::supervisor
