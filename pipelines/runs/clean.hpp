#pragma once
// What dead runs have left: folders whose supervisor is gone, shared memory objects that no process has
// locked or mapped, folders of spaces that no process uses. Only `carousel clean` uses this: a start removes
// only what a dead run of its own name has left. What is known of a run that lost its supervisor is kept
// before its runtime directory is removed (run/lost_run.hpp). Never touches anything of a living run,
// including a stopped or frozen one in another container (run/liveness.hpp), or of another user.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

struct leftover {
    std::string kind;  ///< "runtime directory" | "shared memory" | "space" | "log" | "dead letters"
    std::string path;
    std::string name;    ///< of the pipeline, if known
    std::string run_id;  ///< if known
    u64 bytes = 0;
    std::string why;   ///< why its owner is known to be dead
    std::string kept;  ///< not empty: why it is kept although its owner is gone
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
/// run's runtime directory belong to the user and stay, and so do dead letters, which are a separate
/// leftover.
[[nodiscard]] std::string remove_leftover(const leftover& l);

}  // namespace carousel::supervisor
