#pragma once
// Makes it visible in every namespace that this stage takes part in a run, by a shared lock on the control
// block and one on the lock file of the run's folder (shm/process_fd.hpp). A process takes part in only one
// run.

#include <string>

#include "shm/control_block.hpp"

namespace carousel::stages {

/// Maps the control block of the run and holds the lock on it until the process ends. Throws shm_error.
[[nodiscard]] shm::control_block& join_run(const std::string& run_id);
/// Holds the lock on the folder until the process ends; does nothing if the folder has no lock file.
void join_folder(const std::string& runtime_directory);
/// Releases both locks, also for forked children, before the process ends. The process must not access the
/// run's memory afterwards.
void release_run() noexcept;

}  // namespace carousel::stages
