#pragma once
// The memory of a frame as a GstMemory. It refers to the slot of a ring for as long as the frame is leased,
// so that no element copies; release() ends that: a process that still has the memory then reads a copy.
//
// Threads: any. The element releases; elements downstream map, unmap and free.

#include <gst/gst.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "core/types.hpp"

namespace carousel::gstreamer {

class frame_memory {
public:
    /// `data` stays valid while `keeps` exists; if `keeps` is null: until release() has returned true.
    frame_memory(const std::byte* data, u64 bytes, std::shared_ptr<const void> keeps = nullptr)
        : slot_(data), bytes_(bytes), keeps_(std::move(keeps)) {}
    /// Takes memory of its own.
    explicit frame_memory(std::vector<std::byte> own) : bytes_(own.size()), own_(std::move(own)) {}

    [[nodiscard]] const std::byte* map();
    void unmap(const std::byte* mapped);
    [[nodiscard]] u64 bytes() const noexcept { return bytes_; }
    /// Stops the use of the slot: from now on the memory maps a copy. Waits up to `wait_ns` until no element
    /// has the slot itself mapped. Returns false if one still has.
    [[nodiscard]] bool release(u64 wait_ns);
    /// Called after release() has returned false, when the slot would be unmapped otherwise: `keeps` is
    /// destroyed after the last element has unmapped the slot.
    void keep(std::shared_ptr<const void> keeps);

private:
    std::mutex mutex_;
    std::condition_variable unmapped_;
    const std::byte* slot_ = nullptr;
    u64 bytes_ = 0;
    std::shared_ptr<const void> keeps_;
    std::vector<std::byte> own_;
    u32 maps_ = 0;  ///< of the slot itself
};

/// A new memory object, read-only, that owns a reference to `of`.
[[nodiscard]] GstMemory* wrap(std::shared_ptr<frame_memory> of);

}  // namespace carousel::gstreamer
