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
    bool color = false;
    bool marks = false;     ///< the names of stages are indented, and a mark precedes `selected`
    std::string selected;   ///< label of the selected stage
    std::size_t width = 0;  ///< columns; 0: no limit
    std::size_t rows = 0;   ///< 0: no limit
};

/// A row of the table of stages.
struct stage_row {
    std::string label;  ///< as commands name it: "fragment.1", "b/sink"
    std::string state;
    std::string pid;  ///< "-": no process
};
/// The rows in the order in which they are shown.
[[nodiscard]] std::vector<stage_row> stage_rows(const top_input& in);

/// The parts of the text, from top to bottom; each is a list of lines. Screens without room for all of them
/// show a part of the tables (screen.hpp).
struct top_sections {
    std::vector<std::string> head, stages, notes, rings, events;  ///< tables without their titles
    std::string stages_title, rings_title;
    std::vector<std::size_t> ring_of_row;  ///< by row of stages: its first ring as an index; else npos
    static constexpr std::size_t npos = ~std::size_t{0};
};
[[nodiscard]] top_sections sections_of(const top_input& in);

[[nodiscard]] std::vector<std::string> top_lines(const top_input& in);

/// Returns one letter per slot: . free, w being written, R ready, r being read, d done, ! quarantined.
[[nodiscard]] std::string slot_letters(const telemetry::link_view& link);

}  // namespace carousel::supervisor
