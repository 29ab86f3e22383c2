#pragma once
// Checks of a pipeline file that involve more than one section: names, links, cycles, groups, limits.
// Internal to the reading of pipeline files.

#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

/// Resolves inputs, fills has_output, input_indices and links, and puts producers before consumers. Throws
/// config_error.
void check_and_wire(pipeline& p);

}  // namespace carousel::supervisor
