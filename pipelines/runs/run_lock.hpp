#pragma once
// One supervisor per name: an exclusive file lock on FOLDER/lock, which the kernel releases whenever and
// however the process ends. No stage inherits the lock (CLOEXEC), so it is free as soon as the supervisor has
// ended, even while other processes of the run are alive.

#include <string>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

class run_lock {
public:
    /// Creates and locks the folder of the run; waits up to wait_s for a living run of that name to end.
    /// Throws config_error that names the supervisor which still runs, or the stages that continue in another
    /// pid namespace, where this process can neither adopt nor end them.
    run_lock(const std::string& name, f64 wait_s);
    ~run_lock();
    run_lock(const run_lock&) = delete;
    run_lock& operator=(const run_lock&) = delete;
    [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
    /// true: the folder's run belongs to other processes (its stages wait for a second supervisor), so the
    /// destructor leaves the folder as it is.
    void leave_folder(bool as_it_is) noexcept { leave_ = as_it_is; }
    /// Ends the processes that a dead supervisor of this name left alive (identified by pid and start time in
    /// its control block) and removes its shared memory. `lost`: first saves the data known about the run
    /// (run/liveness.hpp).
    void end_leftovers(bool lost = false) const;
    /// Calls end_leftovers(true) and removes the files that the dead run left in the folder, except pictures.
    /// Other runs are not touched.
    void clear_leftovers() const;
    /// Keeps the folder's logs after the run.
    void keep_logs() noexcept { keep_logs_ = true; }

private:
    std::string folder_;
    shm::unique_fd lock_;
    bool keep_logs_ = false, leave_ = false;
};

}  // namespace carousel::supervisor
