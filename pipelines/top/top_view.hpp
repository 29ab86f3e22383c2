#pragma once
// The text of `carousel top`, computed only from a snapshot, its rates and the supervisor's reply.

#include <deque>
#include <string>
#include <vector>

#include "control/ps_message.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_series.hpp"

namespace carousel::supervisor {

struct top_input {
    const telemetry::snapshot* snap = nullptr;
    const telemetry::rates* rates = nullptr;
    const std::deque<telemetry::run_event>* events = nullptr;
    run::ps_answer ps;   ///< the supervisor's last reply; empty: none yet
    std::string notice;  ///< for example that the supervisor does not reply
    bool color = false, keys = false;
    std::size_t width = 0;  ///< columns; 0: no limit
    std::size_t rows = 0;   ///< 0: no limit
};

[[nodiscard]] std::vector<std::string> top_lines(const top_input& in);

/// One letter per slot: . free, w being written, R ready, r being read, d done, ! quarantined.
[[nodiscard]] std::string slot_letters(const telemetry::link_view& link);

}  // namespace carousel::supervisor
