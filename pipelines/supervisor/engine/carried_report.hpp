#pragma once
// What the frames of a run carried, for its report.

#include "core/json.hpp"
#include "shm/control_block.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Of the last frame that a stage put out behind that output and all its readers have got: {frame, void,
/// capture_clock, capture_ns, metadata, metadata_omitted, used, latest (of one with sampled inputs)}. null:
/// it put none out, or that carries nothing.
[[nodiscard]] nlohmann::json carried_json(const stage_setup& st, const shm::control_block& c, u32 stage,
                                          u32 output = 0);

}  // namespace carousel::supervisor
