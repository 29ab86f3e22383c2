#pragma once
// The parts of a frame that cross a link: the payload, and the data that is sent with it.

#include <carousel/stage.hpp>

#include <memory>
#include <string_view>
#include <vector>

#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

// Converts the data that is sent over a link with a frame's payload.

inline constexpr std::string_view payload_hash_name = "carousel.blocks4k.v1 of a payload";

/// Sets all fields except the bytes, their hash and the used extents.
[[nodiscard]] frame_message message_of(frame& f);
[[nodiscard]] used_planes used_of(const shm::used_extents& from);
[[nodiscard]] shm::used_extents extents_of(const used_planes& from);

// An outgoing frame's payload. The payload is hashed in place and, if it is on a GPU, copied into
// page-locked memory; both operations run on the frame's queue. Each lane has a separate buffer until its
// frame is finished. If frames are sent directly, the payload stays in place, because the ring's memory
// belongs to the frame until the frame's commit.

class outgoing_payload {
public:
    /// For prepare(). `bytes`: the size of each frame. `direct`: if true, frames on a GPU are not copied.
    void prepare(environment& env, u64 bytes, bool direct = false);
    /// The GPU that contains the memory to which describe() refers; null if the CPU can read this memory.
    [[nodiscard]] device::context* gpu() const noexcept { return gpu_; }
    /// For process().
    void enqueue(frame& f);
    /// Called in finish(): sets the message's size, hash and used extents; returns the payload.
    const std::byte* describe(const frame& f, frame_message& m) const;

private:
    u64 bytes_ = 0;
    device::context* gpu_ = nullptr;
    std::unique_ptr<device::mapping> scratch_, hashes_;
    std::vector<std::unique_ptr<device::mapping>> lanes_;  ///< set only if frames are on a GPU and are copied
};

}  // namespace carousel::hosts
