#pragma once
// What of a pipeline file depends on more than one section: names, links, cycles, groups, limits. Internal to
// the reading of pipeline files.

#include "spec/pipeline_document.hpp"

namespace carousel::supervisor {

/// Resolves inputs, fills has_output, input_indices and links, and puts producers before consumers. `d` gives
/// the places. Throws config_error.
void check_and_wire(pipeline& p, const document& d);

}  // namespace carousel::supervisor
