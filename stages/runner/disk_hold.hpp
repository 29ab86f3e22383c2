#pragma once
// A full disk is no poisoned frame: the runner holds the frame, says so every few seconds, and tries again
// until there is room. Meanwhile its entry (shm::incarnation) says so, and no deadline runs; nobody dies, so
// no attempt counts. Once the run has been asked to end it is tried for full_disk_patience_ns more; then the
// supervisor ends the run, with a sentence and exit_code::output.

#include "core/clock.hpp"
#include "core/disk_full.hpp"
#include "shm/control_block.hpp"

namespace carousel::stages {

/// Belongs to the thread that finishes frames.
class disk_hold {
public:
    disk_hold(const shm::control_block& c, shm::incarnation& entry) noexcept : control_(&c), entry_(&entry) {}

    /// Calls write() until it returns; what it has to write must bear being tried again. Exceptions but
    /// disk_full_error pass.
    template <typename F>
    void write_patiently(u64 sequence, F&& write) {
        for (;;) {
            try {
                write();
                break;
            } catch (const disk_full_error& e) {
                wait(sequence, e);
            }
        }
        if (since_ns_ != 0) end(sequence);
    }

private:
    void wait(u64 sequence, const disk_full_error& e);
    void end(u64 sequence) noexcept;
    void wait_for_end() const;

    const shm::control_block* control_;
    shm::incarnation* entry_;
    u64 since_ns_ = 0, said_ns_ = 0, asked_to_end_ns_ = 0;
};

}  // namespace carousel::stages
