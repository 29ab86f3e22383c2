#pragma once
// Stages of a ring, or instances of a stage, on several GPUs: whether each reaches the memory of its rings
// and assets. How it does so is measured in each process (stages/runner/reach.hpp).

#include "supervisor/plan/device_choice.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Throws device_error with the place of the stage's `device` where one of its instances is on a GPU that
/// can't reach a ring or an asset of it on another one. What the probe has not told is taken for granted.
void require_reach(const run_setup& s, const machine_offer& machine);

}  // namespace carousel::supervisor
