#pragma once
// The lock that ensures that each run name has only one supervisor, and functions for the remaining parts of
// a run whose supervisor is dead.

#include <string>

#include "core/types.hpp"
#include "shm/control_block.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

// One supervisor per name: an exclusive file lock on FOLDER/lock, which the kernel releases whenever and
// however the process ends. No stage inherits the lock (CLOEXEC), so it is free as soon as the supervisor has
// ended, even while other processes of the run are alive. The lock can be kept over an execve, so that it is
// never free while another program replaces the supervisor's.

class run_lock {
public:
    /// Creates and locks the folder of the run; waits up to wait_s for a living run of that name to end.
    /// Throws a config_error that names the supervisor that still runs, or the stages that continue in
    /// another pid namespace. This process can neither adopt nor end stages of another pid namespace.
    /// `kept`: descriptor with which the previous program of this process held the lock (keep_over_exec).
    run_lock(const std::string& name, f64 wait_s, int kept = -1);
    ~run_lock();
    run_lock(const run_lock&) = delete;
    run_lock& operator=(const run_lock&) = delete;
    [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
    /// With `true`, the destructor leaves the folder as it is, because the run in the folder belongs to other
    /// processes (the run's stages wait for a second supervisor).
    void leave_folder(bool as_it_is) noexcept { leave_ = as_it_is; }
    /// Ends the processes that a dead supervisor of this name left alive (identified by pid and start time in
    /// the run's control block) and removes the run's shared memory. If `lost` is true, first saves the data
    /// known about the run (run/liveness.hpp).
    void end_leftovers(bool lost = false) const;
    /// Calls end_leftovers(true) and removes the files that the dead run left in the folder, except pictures.
    /// Other runs are not touched.
    void clear_leftovers() const;
    /// Keeps the folder's logs after the run.
    void keep_logs() noexcept { keep_logs_ = true; }
    /// With `true`, the lock stays held if this process calls execve. Returns the descriptor that holds the
    /// lock; the new program passes this descriptor to its run_lock.
    int keep_over_exec(bool keep) const noexcept;
    /// True if the previous program of this process kept the lock, which means that the run in the folder is
    /// the run of that program.
    [[nodiscard]] bool was_kept() const noexcept { return kept_; }

private:
    std::string folder_;
    shm::unique_fd lock_;
    bool keep_logs_ = false, leave_ = false, kept_ = false;
};

// The parts of a run that a dead supervisor has left. The stages continue. The control block identifies each
// process by (pid, start time), so that a second supervisor can find the stages and never mistakes a later
// process with the same pid for a stage. Called by the process that holds the run's lock. All functions are
// read-only.

/// Returns a pidfd of the process that has claimed the entry; empty if no process has claimed the entry, or
/// if the process that has claimed it has ended. A process that died or was stopped between its claim and the
/// store of its start time is identified by its mappings.
[[nodiscard]] shm::unique_fd open_claimer(const shm::incarnation& entry, const std::string& run_id);

/// Returns the number of living processes of the run that are not doomed; also returns 0 if the run has no
/// control block, or a control block of another version.
[[nodiscard]] u32 living_stages(const std::string& run_id);
/// Like living_stages(), but also counts standbys, which map the run's memory, too, and can take its seats.
[[nodiscard]] u32 living_processes(const std::string& run_id);

}  // namespace carousel::supervisor
