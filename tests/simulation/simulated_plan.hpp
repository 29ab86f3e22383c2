#pragma once
// The pipeline that a seed of the simulated runs chooses.

#include <string>

#include "simulated_stage.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::test {

/// One of the shapes: a chain of two or three stages, two instances, two sinks, a fork whose branches join.
/// Returns the choices as a text.
std::string choose_plan(supervisor::run_setup& s, observed_run& r, machine& m);

}  // namespace carousel::test
