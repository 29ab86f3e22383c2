#pragma once
// The answers for probes of a service or container manager. These answers need no token and are made from the
// last view, so a supervisor that hangs does not delay an answer.

#include <string>

#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

struct probe_answer {
    bool ok = false;   ///< 200, else 503
    std::string text;  ///< one sentence
};

/// /healthz: false if no run is watched, if no supervisor controls the run, or if the connection has a
/// problem (view::notice). A run that waits is healthy, and the text contains the reason (hindrance()). A
/// stall needs no probe: the supervisor repairs it or ends the run (stall_timeout_ms).
[[nodiscard]] probe_answer health(const view& v);
/// /readyz: true if the run is healthy, every sink has had a frame, no hindrance() exists, and the run is
/// neither ending nor being rebuilt.
[[nodiscard]] probe_answer readiness(const view& v);

}  // namespace carousel::viewer::web
