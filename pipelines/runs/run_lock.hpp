#pragma once
// One supervisor a name: an exclusive file lock on FOLDER/lock, which the kernel gives up with the process,
// however it dies. No stage inherits it (CLOEXEC), so it is free the moment the supervisor is gone, whoever
// of the run lives on.

#include <string>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// The exclusive lock on an existing folder, without waiting. Empty: a process has it (errno EWOULDBLOCK),
/// the folder has just been removed (ENOENT, ESTALE), or the lock file can't be opened (its errno).
[[nodiscard]] shm::unique_fd try_lock_folder(const std::string& folder);

class run_lock {
public:
    /// Makes the folder of the run and locks it; waits up to wait_s for a living run of that name to end.
    /// Throws config_error that names the supervisor in the way, or the stages that go on in another pid
    /// namespace, where this process can neither adopt nor end them.
    run_lock(const std::string& name, f64 wait_s);
    ~run_lock();
    run_lock(const run_lock&) = delete;
    run_lock& operator=(const run_lock&) = delete;
    [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
    /// The run in the folder belongs to others (true: its stages wait for a second supervisor): at the end it
    /// stays as it is.
    void leave_folder(bool as_it_is) noexcept { leave_ = as_it_is; }
    /// Ends what a dead supervisor of this name left alive (named by pid and start time in its control block)
    /// and removes its shared memory. `lost`: first what is known of the run is kept (run/lost_run.hpp).
    void end_leftovers(bool lost = false) const;
    /// And the files that it left in the folder. Of other runs nothing is touched.
    void clear_leftovers() const;
    /// The folder's logs are to outlive the run.
    void keep_logs() noexcept { keep_logs_ = true; }

private:
    std::string folder_;
    shm::unique_fd lock_;
    bool keep_logs_ = false, leave_ = false;
};

}  // namespace carousel::supervisor
