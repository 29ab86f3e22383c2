#pragma once
// The run for Prometheus: its text format (version 0.0.4). Names and units are a contract as /status.json's
// keys are.

#include <string>

#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

/// Without a run: carousel_up 0 and no more. The instance of a stage is the label stage_instance: `instance`
/// is the scraped address in Prometheus, which would rename ours to exported_instance.
[[nodiscard]] std::string metrics_text(const view& v, u64 now);

}  // namespace carousel::viewer::web
