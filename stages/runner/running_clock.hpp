#pragma once
// The clocks that a stage process publishes in its entry (shm::incarnation) while it works, and by which its
// supervisor detects missed deadlines (pipelines/supervisor/policy/clocks.hpp).

#include "core/clock.hpp"
#include "shm/block_guard.hpp"
#include "shm/control_block.hpp"

namespace carousel::stages {

/// One of the entry's clocks runs while this object exists. Plain stores suffice, because no other process
/// writes these words while this process is alive.
class running_clock {
public:
    explicit running_clock(shm::word& since_ns) noexcept : since_ns_(&since_ns) {
        const shm::block_open open;
        since_ns.store(now_ns(), std::memory_order_release);
    }
    ~running_clock() {
        const shm::block_open open;
        since_ns_->store(0, std::memory_order_release);
    }
    running_clock(const running_clock&) = delete;
    running_clock& operator=(const running_clock&) = delete;

private:
    shm::word* since_ns_;
};

}  // namespace carousel::stages
