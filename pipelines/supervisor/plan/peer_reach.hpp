#pragma once
// For stages of a ring, or instances of a stage, on several GPUs: checks whether each can access the memory
// of its rings and assets. Each process measures which way is faster (stages/runner/reach.hpp).

#include "supervisor/plan/device_choice.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Throws device_error with the place of the stage's `device` if one of its instances is on a GPU that cannot
/// access a ring or an asset of the stage on another GPU. Access that the probe has not reported is assumed
/// to work.
void require_reach(const run_setup& s, const machine_offer& machine);

}  // namespace carousel::supervisor
