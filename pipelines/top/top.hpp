#pragma once
// `carousel top`: reads the control block, read-only, and requests the data that only the supervisor has.

#include <deque>
#include <ostream>
#include <string>
#include <vector>

#include "control/ps_message.hpp"
#include "core/types.hpp"
#include "run/directory.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_series.hpp"

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

// The text of `carousel top`, computed only from a snapshot, its rates and the supervisor's reply.

struct top_input {
    const telemetry::snapshot* snap = nullptr;
    const telemetry::rates* rates = nullptr;
    const std::deque<telemetry::run_event>* events = nullptr;
    run::ps_answer ps;   ///< the supervisor's last reply; empty: no reply yet
    std::string notice;  ///< a line for the user, for example that the supervisor does not reply
    bool color = false, keys = false;
    std::size_t width = 0;  ///< columns; 0: no limit
    std::size_t rows = 0;   ///< 0: no limit
};

[[nodiscard]] std::vector<std::string> top_lines(const top_input& in);

/// Returns one letter per slot: . free, w being written, R ready, r being read, d done, ! quarantined.
[[nodiscard]] std::string slot_letters(const telemetry::link_view& link);

}  // namespace carousel::supervisor
