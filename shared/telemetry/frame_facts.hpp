#pragma once
// The metadata that a frame carries in addition to its payload, for reports and traces: its header, read
// without a lease, and as JSON.
//
// Threading: any process with a mapping of the block. A header that is being written, or was written during
// the read, is skipped, as its slot word shows (ring/link.hpp). A damaged header yields wrong facts, never an
// out-of-bounds access.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "frame/frame_format.hpp"
#include "shm/control_block.hpp"

namespace carousel::telemetry {

struct frame_facts {
    u64 ring_sequence = 0;
    u64 capture_ns = 0;
    shm::capture_clock clock = shm::capture_clock::none;
    bool is_tombstone = false;
    u32 metadata_omitted = 0;
    std::vector<std::byte> metadata = {};  ///< frame/metadata.hpp
    shm::used_extents used = {};
    std::vector<u64> sampled_frames = {};  ///< of its producer's sampled inputs, or shm::no_sampled_frame
    [[nodiscard]] bool empty() const noexcept {
        return capture_ns == 0 && metadata.empty() && metadata_omitted == 0 && used.planes == 0 &&
               sampled_frames.empty();
    }
};

/// The facts of the frame in a READY slot, read without a lease. Empty if the slot is not READY, or was not
/// READY throughout the read.
[[nodiscard]] std::optional<frame_facts> facts_in_passing(const shm::control_block& c, u32 link, u32 slot);
/// The facts of the last frame that a ring has delivered, once no process writes any more: the state at the
/// end of a run. Empty if the ring delivered none.
[[nodiscard]] std::optional<frame_facts> last_facts(const shm::control_block& c, u32 link);

/// {"exposure_ms": 3.5, "camera": "left"}; bytes as {"bytes": 12}.
[[nodiscard]] nlohmann::json metadata_json(std::span<const std::byte> metadata);
/// {"points": [120, 3]}: the used extents of the planes that are partly used.
[[nodiscard]] nlohmann::json used_json(const ring::frame_format& f, const shm::used_extents& used);

}  // namespace carousel::telemetry
