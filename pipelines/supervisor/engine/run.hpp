#pragma once
// Runs a pipeline to its end: the only entry point of the engine (memory, spawning, reclaiming, restarts,
// report).

#include "spec/pipeline_file.hpp"
#include "supervisor/plan/run_options.hpp"

namespace carousel::supervisor {

/// Starts the pipeline. If a run of that name is running and its supervisor was killed, takes that run over
/// instead, provided that it has the same pipeline (compatibility.hpp). Returns the exit code. Throws
/// carousel::error if the run cannot start.
int run_pipeline(const pipeline& p, const run_options& o);

}  // namespace carousel::supervisor
