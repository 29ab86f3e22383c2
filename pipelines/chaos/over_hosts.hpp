#pragma once
// Merges the report of a run over several hosts into the form of a single run: counts are added up, stages of
// other hosts are named HOST/STAGE, and times of their clocks are converted to this host's clock.

#include <nlohmann/json_fwd.hpp>

namespace carousel::supervisor::chaos {

/// Merges the report of a `carousel run` with "hosts"; any other report is returned unchanged.
[[nodiscard]] nlohmann::json over_hosts(nlohmann::json report);

}  // namespace carousel::supervisor::chaos
