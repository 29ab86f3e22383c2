#pragma once
// The clocks that a stage process publishes in its entry for its host work, and the pauses during which none
// of these clocks runs.

#include <array>
#include <mutex>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/block_guard.hpp"
#include "shm/control_block.hpp"
#include "stages/runner/finish_pool.hpp"

namespace carousel::stages {

// The clocks that a stage process publishes in its entry (shm::incarnation) while it works, and by which its
// supervisor detects missed deadlines (pipelines/supervisor/policy/clocks.hpp).

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

// A process that waits for an event outside the run (room on a disk, another host) publishes the wait in its
// entry (shm::incarnation); during the wait no deadline runs and no attempt counts. Several threads may wait
// at the same time, for different reasons; if one waits for a full disk and another one for a link, the full
// disk is reported.

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
    // pause ends, the start time of all work in progress is set to the present time.
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

// A full disk is not a poisoned frame: the runner holds the frame, logs a warning every few seconds and
// retries until there is room. Meanwhile the process's entry (shm::incarnation) shows the pause and no
// deadline runs; no process dies, so no attempt counts. After the end of the run has been requested, the
// write is retried for another full_disk_patience_ns; then the supervisor ends the run with a message and
// exit_code::output.

/// Shared by all threads that do a stage's host work. The process is paused while at least one of them waits.
class disk_full_pause {
public:
    disk_full_pause(const shm::control_block& c, external_pause& outside) noexcept
        : control_(&c), outside_(&outside) {}

    /// Calls write() until it returns; write() must be safe to repeat. Exceptions other than disk_full_error
    /// propagate.
    template <typename F>
    void write_patiently(u64 ring_sequence, F&& write) {
        for (bool paused = false;; paused = true) {
            try {
                write();
                if (paused) end(ring_sequence);
                return;
            } catch (const disk_full_error& e) {
                wait(ring_sequence, e, !paused);
            }
        }
    }

private:
    void wait(u64 ring_sequence, const disk_full_error& e, bool begins);
    [[nodiscard]] bool has_end_timeout_passed(u64 now) noexcept;
    void end(u64 ring_sequence) noexcept;
    [[noreturn]] void wait_for_end() const;

    const shm::control_block* control_;
    external_pause* outside_;
    std::mutex mutex_;  ///< process-local; guards the members below
    u32 paused_threads_ = 0;
    u64 since_ns_ = 0, logged_ns_ = 0, end_requested_ns_ = 0;
};

}  // namespace carousel::stages
