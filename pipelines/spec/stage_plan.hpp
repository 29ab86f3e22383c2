#pragma once
// The only place where keys of a pipeline file are put into the plan from which a control block is made.

#include "ring/topology.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

/// Does not set the values that depend on the stage's description: the size of its buffers, and the
/// committer.
[[nodiscard]] ring::stage_plan stage_plan_of(const stage_spec& s, const link_spec& output);

}  // namespace carousel::supervisor
