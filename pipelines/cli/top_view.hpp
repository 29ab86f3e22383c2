#pragma once
// What `carousel top` shows, as lines of text: made from a snapshot, its rates and what the supervisor says,
// and nothing else.

#include <deque>
#include <string>
#include <vector>

#include "run/ps_message.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_rates.hpp"

namespace carousel::supervisor {

struct top_input {
    const telemetry::snapshot* snap = nullptr;
    const telemetry::rates* rates = nullptr;
    const std::deque<telemetry::run_event>* events = nullptr;
    run::ps_answer ps;   ///< the supervisor's last answer; empty: none yet
    std::string notice;  ///< e.g. that it does not answer
    bool color = false, keys = false;
    std::size_t width = 0;  ///< columns; 0: no limit
    std::size_t rows = 0;   ///< 0: no limit
};

[[nodiscard]] std::vector<std::string> top_lines(const top_input& in);

/// One letter a slot: . free, w being written, R ready, r being read, d done, ! quarantined.
[[nodiscard]] std::string slot_letters(const telemetry::link_view& link);

}  // namespace carousel::supervisor
