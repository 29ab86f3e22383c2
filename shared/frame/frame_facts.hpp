#pragma once
// The data of a frame in addition to its payload, as a copy in this process's memory: taken from a header, a
// recorded frame, or a saved frame.

#include <span>
#include <vector>

#include "shm/frame_header.hpp"

namespace carousel::ring {

struct frame_facts : shm::frame_meta {
    u64 ring_sequence = 0;
    u32 metadata_omitted = 0;
    std::vector<std::byte> parameters = {};  ///< the parameter set of the run with which the frame was made;
                                             ///< empty: none
    std::vector<std::byte> metadata = {};    ///< frame/metadata.hpp
    shm::used_extents used = {};
    std::vector<u64> sampled_frames = {};  ///< frame numbers of its producer's sampled inputs, or
                                           ///< shm::no_sampled_frame

    /// Null: all planes are used as declared.
    [[nodiscard]] const shm::used_extents* used_in_part() const noexcept {
        return used.planes != 0 ? &used : nullptr;
    }
    void set(std::span<const std::byte> metadata_bytes, const shm::used_extents* used_of) {
        metadata.assign(metadata_bytes.begin(), metadata_bytes.end());
        used = used_of != nullptr ? *used_of : shm::used_extents{};
    }
};

/// Copies a header, with its counts clamped: either under a lease, or the caller checks afterwards that the
/// header has not changed. `parameter_bytes`: size of the run's parameter set. The memory of `to` is reused.
void copy_facts(const shm::frame_header& h, u32 parameter_bytes, frame_facts& to);

}  // namespace carousel::ring
