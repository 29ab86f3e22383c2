#pragma once
// Runs a pipeline in the background: starts the same program again in its own session, so that it survives
// the terminal.
//
// Called by the `carousel` program for `up -d` and `run -d`, while it holds no lock and has started no
// process. The child's stdout and stderr are a pipe to the caller until the caller exits; after that the
// child continues without a reader, and its output is in its run's logs. Ctrl-C (INT, TERM, HUP) during the
// wait ends the child in the same way as a run in the foreground.

#include <ostream>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

struct detach_request {
    std::string name;                ///< of the pipeline
    std::vector<std::string> words;  ///< command line of the child, without the program
    std::string command;             ///< the command by which the user called this program, for hints:
                                     ///< own_command()
    f64 patience_s = 60;  ///< after this time the caller returns and lists the stages that are not ready
};

/// Starts the child and waits until every stage is ready or the child has ended. Returns 0 if the pipeline
/// runs (or has run to its end); the child's exit code if it failed, with its last lines on `err`; 1 if a
/// stage was not ready in time (the pipeline continues); 128+N after signal N. Throws shm_error if the child
/// can't be started.
int run_in_background(const detach_request& d, std::ostream& out, std::ostream& err);

}  // namespace carousel::supervisor
