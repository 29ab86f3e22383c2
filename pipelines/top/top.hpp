#pragma once
// `carousel top`: reads the control block, read-only, and requests the data that only the supervisor has.

#include <ostream>
#include <string>

#include "core/types.hpp"
#include "run/directory.hpp"

namespace carousel::supervisor {

struct top_options {
    bool once = false;     ///< prints once and ends
    bool image = false;    ///< with the newest picture
    std::string image_of;  ///< STAGE or STAGE/PLANE; "": the ring that the last sink reads
    f64 interval_s = 1;
    bool color = false;
    bool on_terminal = false;  ///< `out` is a terminal that understands escape sequences
};

/// Shows the run until the run ends or a key or signal ends the display; without a terminal, or with `once`,
/// prints the state once. Returns an exit code. Throws carousel::error.
int show_top(const run::record& run, const top_options& o, std::ostream& out);

}  // namespace carousel::supervisor
