#pragma once
// Checks whether the program that is on the disk now can take over a stage of a run: it is queried as before
// the start of the run, with the inputs that it would be started with. So a mistake in it is reported to the
// user who requests the restart, while the old program continues.
//
// Called by clients of a run (`carousel restart`), not by its supervisor, which never blocks.

#include <string>

#include "run/directory.hpp"

namespace carousel::supervisor {

/// `stage`: the name that users give, "fragment", "fragment.1". Throws config_error if the program refuses,
/// or makes frames of another format than the run was made for. A stage or a run that is unknown here passes:
/// the supervisor decides.
void require_able_successor(const run::record& r, const std::string& stage);

}  // namespace carousel::supervisor
