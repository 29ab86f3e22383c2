#pragma once
// The run's metrics in the Prometheus text format (version 0.0.4). Names and units are stable, like the keys
// of /status.json.

#include <string>

#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

/// Returns the metrics of the run; without a run only carousel_up 0. `now`: CLOCK_MONOTONIC, ns. The instance
/// of a stage has the label stage_instance, because Prometheus uses `instance` for the scraped address and
/// would rename ours to exported_instance.
[[nodiscard]] std::string metrics_text(const view& v, u64 now);

}  // namespace carousel::viewer::web
