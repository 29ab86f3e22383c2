#pragma once
// Runs a pipeline to its end: the one entrance to the engine (memory, spawning, reclaiming, restarts,
// report).

#include "spec/pipeline_file.hpp"
#include "supervisor/plan/run_options.hpp"

namespace carousel::supervisor {

/// Starts the pipeline, or takes over a living run of that name whose supervisor was killed, if it is the
/// same pipeline (run_identity.hpp). Returns the exit code; throws carousel::error for what stands in the way
/// of a start.
int run_pipeline(const pipeline& p, const run_options& o);

}  // namespace carousel::supervisor
