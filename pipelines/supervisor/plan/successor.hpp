#pragma once
// Whether the program that is on the disk now can take a stage of a run over: it is asked as it was before
// the run started, with what it would be started with. So a mistake in it is a sentence to whoever asks for
// the restart, while the old program goes on.
//
// Who may call: clients of a run (`carousel restart`), not its supervisor, which waits for nobody.

#include <string>

#include "run/directory.hpp"

namespace carousel::supervisor {

/// `stage` as users name it: "fragment", "fragment.1". Throws config_error: the program refuses, or makes
/// other frames than the run was made for. A stage or a run that nothing is known of from here is let
/// through: the supervisor has the last word.
void require_able_successor(const run::record& r, const std::string& stage);

}  // namespace carousel::supervisor
