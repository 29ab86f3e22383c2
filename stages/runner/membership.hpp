#pragma once
// A stage shows that it takes part in a run, to processes of every namespace: by a shared lock on the control
// block, and one on the lock file of the run's folder (shm/file_lock.hpp). A process has one run.

#include <string>

#include "shm/control_block.hpp"

namespace carousel::stages {

/// Maps the control block of the run until the process ends, and holds the lock on it. Throws shm_error.
[[nodiscard]] shm::control_block& join_run(const std::string& run_id);
/// Holds the lock on the folder, for the process's life; without a lock file in it, none.
void join_folder(const std::string& runtime_directory);
/// Releases both, also for forked children, before the process ends. It may touch the run's memory no more.
void release_run() noexcept;

}  // namespace carousel::stages
