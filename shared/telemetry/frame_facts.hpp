#pragma once
// What a frame carries beside its payload, for reports and traces: its header, read in passing, and as JSON.
//
// Who may call: any process with a mapping of the block, and no lease. A header that is being written, or was
// while it was read, is passed by: its slot's word tells (ring/link.hpp). A damaged one yields wrong facts,
// never an access out of range.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "ring/frame_format.hpp"
#include "shm/control_block.hpp"

namespace carousel::telemetry {

struct frame_facts {
    u64 ring_sequence = 0;
    u64 capture_ns = 0;
    shm::capture_clock clock = shm::capture_clock::none;
    bool is_tombstone = false;
    u32 metadata_omitted = 0;
    std::vector<std::byte> metadata = {};  ///< ring/metadata.hpp
    shm::used_extents used = {};
    std::vector<u64> sampled_frames = {};  ///< of its maker's sampled inputs, or shm::no_sampled_frame
    [[nodiscard]] bool empty() const noexcept {
        return capture_ns == 0 && metadata.empty() && metadata_omitted == 0 && used.planes == 0 &&
               sampled_frames.empty();
    }
};

/// Of the frame in a slot that is READY. Nothing: it is not, or was not all the time.
[[nodiscard]] std::optional<frame_facts> facts_in_passing(const shm::control_block& c, u32 link, u32 slot);
/// Of the last frame that a ring has delivered, once nobody writes any more: what a run leaves at its end.
/// Nothing: it delivered none.
[[nodiscard]] std::optional<frame_facts> last_facts(const shm::control_block& c, u32 link);

/// {"exposure_ms": 3.5, "camera": "left"}; bytes as {"bytes": 12}.
[[nodiscard]] nlohmann::json metadata_json(std::span<const std::byte> metadata);
/// {"points": [120, 3]}: of the planes that are used in part.
[[nodiscard]] nlohmann::json used_json(const ring::frame_format& f, const shm::used_extents& used);

}  // namespace carousel::telemetry
