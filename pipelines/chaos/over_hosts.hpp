#pragma once
// The report of a run over several hosts as that of one run: what they have counted is added up, the others'
// stages are called HOST/STAGE, and times of their clocks are told by this host's.

#include <nlohmann/json_fwd.hpp>

namespace carousel::supervisor::chaos {

/// Of `carousel run` with "hosts"; any other report as it is.
[[nodiscard]] nlohmann::json over_hosts(nlohmann::json report);

}  // namespace carousel::supervisor::chaos
