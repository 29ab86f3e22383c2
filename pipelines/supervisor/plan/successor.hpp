#pragma once
// Checks whether the program that is now on disk can take over a stage of a run: the program is queried in
// the same way as before the start of a run, with the inputs that it would be started with. So an error in
// the program is reported to the user who requests the restart, while the old program continues.
//
// Called by clients of a run (`carousel restart`), not by its supervisor, because that must never block.

#include <string>

#include "run/directory.hpp"

namespace carousel::supervisor {

/// `stage`: the name that users give, "fragment", "fragment.1". Throws config_error if the program refuses,
/// or produces frames of a format that differs from that of the run. A stage or a run that is unknown here
/// passes the check; the supervisor then decides.
void require_able_successor(const run::record& r, const std::string& stage);

}  // namespace carousel::supervisor
