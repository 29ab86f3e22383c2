#pragma once
// A pipeline in the background: the same program once more, in a session of its own, so that it survives the
// terminal.
//
// Who may call: the `carousel` program, as `up -d` or `run -d`; it holds no lock and has started nothing. The
// child's stdout and stderr are a pipe to us until we leave; then it goes on without a reader, and what it
// says is in its run's logs. Ctrl-C (INT, TERM, HUP) while we wait ends the child, as it would have ended a
// run in the foreground.

#include <ostream>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

struct detach_request {
    std::string name;                ///< of the pipeline
    std::vector<std::string> words;  ///< command line of the child, without the program
    std::string command;             ///< how the user calls us, for the hints: own_command()
    f64 patience_s = 60;             ///< then we leave, and say what is not ready yet
};

/// Starts it and waits until every stage is ready, or it has ended. Returns 0 when it runs (or has run to its
/// end); the child's own exit code when it failed, with its last words on `err`; 1 when some stage was not
/// ready in time: the pipeline goes on. Throws shm_error: it can't be started.
int run_in_background(const detach_request& d, std::ostream& out, std::ostream& err);

}  // namespace carousel::supervisor
