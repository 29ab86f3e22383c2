#pragma once
// Files that the CUDA driver leaves: for IPC events it creates a file /dev/shm/cuda.shm.UID.PID.N (numbers in
// hex) per process and removes it only at a normal exit. The file of a killed stage would stay, so a run with
// thousands of restarts would fill /dev/shm.

#include "core/types.hpp"

namespace carousel::supervisor {

/// Removes the driver's files of a process of this user that has ended (and is fenced); returns the number of
/// files.
u32 remove_driver_leftovers(i32 pid, const char* folder = "/dev/shm") noexcept;

}  // namespace carousel::supervisor
