#pragma once
// Describes the contents of the frames of a run, for its report.

#include "core/json.hpp"
#include "shm/control_block.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Describes the newest frame that stage `stage` committed to output `output` and that all its readers have
/// received: {frame, tombstone, capture_clock, capture_ns, metadata, metadata_omitted, used, sampled (only
/// with sampled inputs)}. Returns null if there is no such frame or if that frame carries none of these.
[[nodiscard]] nlohmann::json carried_json(const stage_setup& st, const shm::control_block& c, u32 stage,
                                          u32 output = 0);

}  // namespace carousel::supervisor
