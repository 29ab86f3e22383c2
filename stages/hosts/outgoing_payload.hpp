#pragma once
// An outgoing frame's payload: it is hashed in place, and on a GPU copied into page-locked memory; both are
// work on the frame's queue. Each lane has a separate buffer until its frame is finished. With direct sending
// the payload stays in place: the ring's memory belongs to the frame until its commit.

#include <memory>
#include <vector>

#include <carousel/stage.hpp>
#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

class outgoing_payload {
public:
    /// For prepare(). Frames have `bytes` bytes each. `direct`: frames on a GPU are not copied.
    void prepare(environment& env, u64 bytes, bool direct = false);
    /// The GPU that contains the memory described by describe(); null: memory that the CPU reads.
    [[nodiscard]] device::context* gpu() const noexcept { return gpu_; }
    /// For process().
    void enqueue(frame& f);
    /// Called in finish(): sets the message's size, hash and used extents; returns the payload.
    const std::byte* describe(const frame& f, frame_message& m) const;

private:
    u64 bytes_ = 0;
    device::context* gpu_ = nullptr;
    std::unique_ptr<device::mapping> scratch_, hashes_;
    std::vector<std::unique_ptr<device::mapping>> lanes_;  ///< for a GPU whose frames are copied
};

}  // namespace carousel::hosts
