#pragma once
// What dead runs have left: folders whose supervisor is gone, shared memory objects on which no process holds
// a lock and that none maps, folders of spaces that no process has. Used by `carousel clean` alone: a start
// removes what a dead run of its own name has left, and nothing else. What is known of a run that lost its
// supervisor is kept before its runtime directory is removed (run/lost_run.hpp). Never touches what belongs
// to a living run, also a stopped or frozen one of another container (run/liveness.hpp), or to another user.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

struct leftover {
    std::string kind;  ///< "runtime directory" | "shared memory" | "space" | "log" | "dead letters"
    std::string path;
    std::string name;    ///< the pipeline's, where known
    std::string run_id;  ///< where known
    u64 bytes = 0;
    std::string why;   ///< why it is known to be dead
    std::string kept;  ///< not empty: why it is left alone although its owner is gone
    /// A run has left it for its user, lines or frames that were given up: `carousel clean` alone takes it.
    [[nodiscard]] bool on_purpose() const noexcept;
};

/// Places to look at; the defaults are the real ones.
struct clean_places {
    std::vector<std::string> runs;  ///< folders of runs; empty: runs_folder(), and the one under /tmp
    std::string shared_memory = "/dev/shm";
};

[[nodiscard]] std::vector<leftover> find_leftovers(const clean_places& places = {});
/// Checks again and removes one, with the lock held that a start or a process of the run would need: empty on
/// success or when there is nothing to remove any more, else what stands in the way. Pictures in a run's
/// runtime directory are the user's: they stay. So do frames that were given up, as long as other things of
/// the run are there.
[[nodiscard]] std::string remove_leftover(const leftover& l);

}  // namespace carousel::supervisor
