#pragma once
// The one place where keys of a pipeline file go into the plan that a control block is made from.

#include "ring/topology.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

/// Without what only the stage's description tells: the size of its buffers, and who commits.
[[nodiscard]] ring::stage_plan stage_plan_of(const stage_spec& s, const link_spec& output);

}  // namespace carousel::supervisor
