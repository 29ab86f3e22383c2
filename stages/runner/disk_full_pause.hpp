#pragma once
// A full disk is no poisoned frame: the runner holds the frame, says so every few seconds, and tries again
// until there is room. Meanwhile its entry (shm::incarnation) says so, and no deadline runs; nobody dies, so
// no attempt counts. Once the run has been asked to end it is tried for full_disk_patience_ns more; then the
// supervisor ends the run, with a sentence and exit_code::output.

#include <mutex>

#include "core/clock.hpp"
#include "core/disk_full.hpp"
#include "shm/control_block.hpp"
#include "stages/runner/external_pause.hpp"

namespace carousel::stages {

/// For all threads that do a stage's host work. The process is held as long as one of them is.
class disk_full_pause {
public:
    disk_full_pause(const shm::control_block& c, external_pause& outside) noexcept
        : control_(&c), outside_(&outside) {}

    /// Calls write() until it returns; what it has to write must bear being tried again. Exceptions but
    /// disk_full_error pass.
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
    std::mutex mutex_;        ///< this process's own; guards what follows
    u32 paused_threads_ = 0;  ///< threads
    u64 since_ns_ = 0, logged_ns_ = 0, end_requested_ns_ = 0;
};

}  // namespace carousel::stages
