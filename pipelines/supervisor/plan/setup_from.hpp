#pragma once
// Makes the engine's setup from the pipeline file's values and the stages' descriptions.

#include "spec/pipeline_file.hpp"
#include "supervisor/plan/device_choice.hpp"
#include "supervisor/plan/run_options.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Probes for GPUs only if a stage may use one.
[[nodiscard]] machine_offer probe_for(const pipeline& p);
/// Throws device_error (with the place in the file) for a device that does not exist, and config_error for
/// assets that do not match.
[[nodiscard]] run_setup setup_from(const pipeline& p, const run_options& o, const machine_offer& machine);

}  // namespace carousel::supervisor
