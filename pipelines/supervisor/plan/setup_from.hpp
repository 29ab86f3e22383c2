#pragma once
// From the pipeline file's values and the stages' descriptions to what the engine works with.

#include "spec/pipeline_file.hpp"
#include "supervisor/plan/device_choice.hpp"
#include "supervisor/plan/run_options.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Asks for GPUs only when some stage may use one.
[[nodiscard]] machine_offer probe_for(const pipeline& p);
/// Throws device_error (with the place in the file) for a device that isn't there, config_error for assets
/// that don't fit together.
[[nodiscard]] run_setup setup_from(const pipeline& p, const run_options& o, const machine_offer& machine);

}  // namespace carousel::supervisor
