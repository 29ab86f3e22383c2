#pragma once
// A full disk is not a poisoned frame: the runner holds the frame, logs a warning every few seconds and
// retries until there is room. Meanwhile the process's entry (shm::incarnation) shows the pause and no
// deadline runs; no process dies, so no attempt counts. After the end of the run has been requested, the
// write is retried for another full_disk_patience_ns; then the supervisor ends the run with a message and
// exit_code::output.

#include <mutex>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/control_block.hpp"
#include "stages/runner/external_pause.hpp"

namespace carousel::stages {

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
