#pragma once
// The answers for probes of a service or container manager. They need no token, and are made from the last
// view: a supervisor that hangs delays none.

#include <string>

#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

struct probe_answer {
    bool ok = false;   ///< 200, else 503
    std::string text;  ///< one sentence
};

/// /healthz: false if no run is watched, or no supervisor leads the run or gives a sign of life. A run that
/// waits is healthy, and the text has the reason (hindrance()). A stall needs no probe: the supervisor
/// repairs it or ends the run (stall_timeout_ms).
[[nodiscard]] probe_answer health(const view& v);
/// /readyz: true if the run is healthy, has delivered its first frame, has no reason to wait and does not
/// end.
[[nodiscard]] probe_answer readiness(const view& v);

}  // namespace carousel::viewer::web
