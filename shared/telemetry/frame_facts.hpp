#pragma once
// The data of a frame in addition to its payload, for reports and traces: read from its header without a
// lease, and converted to JSON.
//
// Threading: may be used by any process with a mapping of the block. If the slot word shows that the header
// is being written or was written during the read, the header is skipped (ring/link.hpp). A damaged header
// yields wrong facts, never an out-of-bounds access.

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "frame/frame_format.hpp"
#include "frame/metadata.hpp"
#include "shm/control_block.hpp"

namespace carousel::telemetry {

/// Returns the facts of the frame in a READY slot, read without a lease. Empty if the slot is not READY, or
/// did not stay READY during the read.
[[nodiscard]] std::optional<ring::frame_facts> facts_in_passing(const shm::control_block& c, u32 link,
                                                                u32 slot);
/// Returns the facts of the last frame that a ring has delivered; used when no process writes any more, for
/// the state at the end of a run. Empty if the ring delivered none.
[[nodiscard]] std::optional<ring::frame_facts> last_facts(const shm::control_block& c, u32 link);

/// {"exposure_ms": 3.5, "camera": "left"}; bytes as {"bytes": 12}.
[[nodiscard]] nlohmann::json metadata_json(std::span<const std::byte> metadata);
/// {"points": [120, 3]}: the used extents of the planes that are partly used.
[[nodiscard]] nlohmann::json used_json(const ring::frame_format& f, const shm::used_extents& used);

}  // namespace carousel::telemetry
