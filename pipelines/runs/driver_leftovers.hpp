#pragma once
// What the CUDA driver leaves behind: for IPC events it keeps a file /dev/shm/cuda.shm.UID.PID.N (numbers in
// hex) a process and removes it at an ordinary exit only. A killed stage's stays for ever, so a run with
// thousands of restarts would fill /dev/shm.

#include "core/types.hpp"

namespace carousel::supervisor {

/// Removes the driver's files of a process of this user that is gone (fenced); returns how many there were.
u32 remove_driver_leftovers(i32 pid, const char* folder = "/dev/shm") noexcept;

}  // namespace carousel::supervisor
