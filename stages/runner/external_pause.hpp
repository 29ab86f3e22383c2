#pragma once
// A process that waits for an event outside the run (room on a disk, another host) publishes this in its
// entry (shm::incarnation); during the wait no deadline runs and no attempt counts. Several threads may wait,
// each for its own reason; a full disk has priority over a link in reports.

#include <array>
#include <mutex>

#include "core/clock.hpp"
#include "shm/block_guard.hpp"
#include "shm/control_block.hpp"
#include "stages/runner/finish_clock.hpp"

namespace carousel::stages {

class external_pause {
public:
    external_pause(shm::incarnation& entry, finish_clock& clock) noexcept : entry_(&entry), clock_(&clock) {}

    void begin(shm::pause_reason why) noexcept {
        const std::lock_guard lock(mutex_);
        waiting(why)++;
        publish();
    }
    void end(shm::pause_reason why) noexcept {
        const std::lock_guard lock(mutex_);
        waiting(why)--;
        publish();
    }

private:
    u32& waiting(shm::pause_reason why) noexcept {
        return waiting_[why == shm::pause_reason::disk_full ? 0 : 1];
    }

    // The reason is stored before the time, so a reader that sees the time also finds the reason. Before the
    // pause ends, work in progress is counted as begun now.
    void publish() noexcept {
        const auto why = waiting_[0] > 0   ? shm::pause_reason::disk_full
                         : waiting_[1] > 0 ? shm::pause_reason::link
                                           : shm::pause_reason::nothing;
        if (why == why_) return;
        const shm::block_open open;
        const bool begins = why_ == shm::pause_reason::nothing;
        why_ = why;
        if (why == shm::pause_reason::nothing) {
            clock_->restart();
            entry_->paused_since_ns.store(0, std::memory_order_release);
            entry_->pause.store(static_cast<u64>(why), std::memory_order_release);
            return;
        }
        entry_->pause.store(static_cast<u64>(why), std::memory_order_release);
        if (begins) entry_->paused_since_ns.store(now_ns(), std::memory_order_release);
    }

    shm::incarnation* entry_;
    finish_clock* clock_;
    std::mutex mutex_;  ///< process-local
    std::array<u32, 2> waiting_{};
    shm::pause_reason why_ = shm::pause_reason::nothing;
};

}  // namespace carousel::stages
