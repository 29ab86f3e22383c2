#pragma once
// Spaces (shared/ipc) on the command line; implements runs/spaces.hpp, which the commands for runs use.

#include <string>

namespace carousel::supervisor {

/// Throws config_error if a run of that name is alive or continues without its supervisor: the space belongs
/// to it.
void require_no_run(const std::string& name);

}  // namespace carousel::supervisor
