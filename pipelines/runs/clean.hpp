#pragma once
// Leftovers of dead runs: folders whose supervisor is gone, shared memory objects that no process has locked
// or mapped, folders of spaces that no process uses. Only `carousel clean` uses this: the start of a run
// removes only the leftovers of a dead run of the same name. The data known about a run that lost its
// supervisor is saved before its runtime directory is removed (run/liveness.hpp). Never touches anything that
// belongs to another user or to a living run, including a run that is stopped, or frozen in another container
// (run/liveness.hpp).

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

struct leftover {
    std::string kind;  ///< "runtime directory" | "shared memory" | "space" | "log" | "dead letters"
    std::string path;
    std::string name;    ///< name of the pipeline, if known
    std::string run_id;  ///< if known
    u64 bytes = 0;
    std::string why;   ///< the reason why its owner is known to be dead
    std::string kept;  ///< not empty: the reason why it is kept although its owner is dead
    /// Returns true for logs and dead letters, which a run leaves for its user: only `carousel clean` removes
    /// them.
    [[nodiscard]] bool on_purpose() const noexcept;
};

/// Places to search; the defaults are the real ones.
struct clean_places {
    std::vector<std::string> runs;  ///< folders of runs; empty: runs_folder(), and the one under /tmp
    std::string shared_memory = "/dev/shm";
};

[[nodiscard]] std::vector<leftover> find_leftovers(const clean_places& places = {});
/// Checks again and removes one leftover, holding the lock that a start or a process of the run would need.
/// Returns "" on success or if there is nothing left to remove, else the reason why it is kept. Pictures in a
/// run's runtime directory belong to the user and are not removed; neither are dead letters, which are a
/// separate leftover.
[[nodiscard]] std::string remove_leftover(const leftover& l);

// Files that the CUDA driver leaves: for IPC events it creates a file /dev/shm/cuda.shm.UID.PID.N (numbers in
// hex) per process and removes it only at a normal exit. The file of a killed stage would stay, so a run with
// thousands of restarts would fill /dev/shm.

/// Removes the driver's files of a process of this user that has ended (and is fenced); returns the number of
/// files.
u32 remove_driver_leftovers(i32 pid, const char* folder = "/dev/shm") noexcept;

}  // namespace carousel::supervisor
