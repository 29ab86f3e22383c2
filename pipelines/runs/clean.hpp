#pragma once
// Finds and removes the leftovers of dead runs: folders whose supervisor has ended, shared-memory objects
// that no process has locked or mapped, and folders of spaces that no process uses. Only `carousel clean`
// uses these functions, because the start of a run removes only the leftovers of a dead run of the same name.
// The data known about a run that lost its supervisor is saved before its runtime directory is removed
// (run/liveness.hpp). These functions never change anything that belongs to another user or to a living run.
// A run that is stopped, or frozen in another container, is a living run (run/liveness.hpp).

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
    std::string why;   ///< the reason why the leftover's owner is known to be dead
    std::string kept;  ///< the reason why the leftover is kept although its owner is dead; empty if the
                       ///< leftover is not kept
    /// Returns true for logs and dead letters, which a run leaves for its user: only `carousel clean` removes
    /// them.
    [[nodiscard]] bool on_purpose() const noexcept;
};

/// The places to search; the default values are the places that runs use.
struct clean_places {
    std::vector<std::string> runs;  ///< folders of runs; empty: runs_folder(), and the one under /tmp
    std::string shared_memory = "/dev/shm";
};

[[nodiscard]] std::vector<leftover> find_leftovers(const clean_places& places = {});
/// Checks one leftover again and removes it, while this process holds the lock that a start or a process of
/// the run would need. Returns "" on success or if nothing is left to remove, otherwise the reason why the
/// leftover is kept. Pictures in a run's runtime directory belong to the user and are not removed; neither
/// are dead letters, which are a separate leftover.
[[nodiscard]] std::string remove_leftover(const leftover& l);

// Removes files that the CUDA driver leaves. For IPC events the driver creates a file
// /dev/shm/cuda.shm.UID.PID.N (numbers in hex) per process and removes it only at a normal exit. The file of
// a killed stage would stay, so a run with thousands of restarts would fill /dev/shm.

/// Removes the files that the driver has left of process `pid`, which belongs to this user and has passed its
/// fence. Returns the number of files.
u32 remove_driver_leftovers(i32 pid, const char* folder = "/dev/shm") noexcept;

}  // namespace carousel::supervisor
