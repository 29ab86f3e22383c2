#pragma once
// The run for Prometheus: its text format (version 0.0.4). Names and units are a contract as /status.json's
// keys are.

#include <string>

#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

/// Where no run is watched: carousel_up 0 and no more.
[[nodiscard]] std::string metrics_text(const view& v, u64 now);

}  // namespace carousel::viewer::web
