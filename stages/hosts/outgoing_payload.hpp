#pragma once
// A frame's payload on its way out: named by a hash where it lies, and on a GPU copied into page-locked
// memory, both as work of the frame's queue. Each lane has memory of its own until its frame is finished.
// Sent directly it stays where it lies: the ring's memory is the frame's until its commit.

#include <memory>
#include <vector>

#include <carousel/stage.hpp>
#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

class outgoing_payload {
public:
    /// In prepare(). Frames of `bytes` each. `direct`: a GPU's are not copied.
    void prepare(environment& env, u64 bytes, bool direct = false);
    /// The GPU whose memory describe() points to; null: the CPU reads it.
    [[nodiscard]] device::context* gpu() const noexcept { return gpu_; }
    /// In process().
    void enqueue(frame& f);
    /// In finish(): the message's size, hash and what is in use of the planes; and the bytes.
    const std::byte* describe(const frame& f, frame_message& m) const;

private:
    u64 bytes_ = 0;
    device::context* gpu_ = nullptr;
    std::unique_ptr<device::mapping> scratch_, hashes_;
    std::vector<std::unique_ptr<device::mapping>> lanes_;  ///< of a GPU whose frames are copied
};

}  // namespace carousel::hosts
