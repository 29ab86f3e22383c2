#pragma once
// Liveness of a run: whether it has a supervisor, whether its stages continue alone, or whether and how it
// has ended. `ps`, `down`, `clean`, the start of a run and the observers all use this check. The absence of a
// sign of life (a heartbeat, a pid of another namespace) never counts as death: `liveness::over` is proven by
// the run's locks, which the kernel keeps as long as its processes are alive. The supervisor holds the
// exclusive lock of the run's folder, stages hold shared locks on it (shm/runtime_folder.hpp) and on the
// control block (shm/segment.hpp; a container may have a separate /dev/shm), and a port's program holds the
// flock() of its own file, FOLDER/port-SEAT-EPOCH.lock.
//
// Read-only. A run is identified by (folder, run id): another run in the same folder is another run. May be
// called from any process of the user, on any thread.

#include <string>
#include <vector>

#include "run/directory.hpp"
#include "shm/control_block.hpp"
#include "shm/segment.hpp"

namespace carousel::run {

enum class liveness : u8 {
    led,    ///< has a supervisor
    alone,  ///< the supervisor has ended and stages continue: another supervisor may take them over
    over,
};
/// Returns `over` only if no process of the run can be left: no supervisor, stage or port's program, and no
/// child forked by one of them. `lock_is_ours`: the caller holds the lock of the run's folder.
[[nodiscard]] liveness liveness_of(const record& r, bool lock_is_ours = false);

/// True if a stage or a port's program has a lock in the run's folder, or if that cannot be determined.
[[nodiscard]] bool has_members(const std::string& folder);

/// Stages that continue without their supervisor.
struct orphaned_stages {
    bool any = false;
    u32 count = 0;  ///< 0 with `any`: they cannot be counted from here (another pid or time namespace)
};
/// For a run whose supervisor has ended.
[[nodiscard]] orphaned_stages orphaned_stages_of(const record& r);

/// Runs that can be observed: the supervisor is alive, or stages continue without it. Sorted by name.
[[nodiscard]] std::vector<record> watchable_runs();

struct liveness_report {
    liveness state = liveness::led;
    u32 stages = 0;      ///< for `alone`: as orphaned_stages::count
    std::string ending;  ///< for `over`: "exit code 0"
};
/// Checks an observed run. Updates `r` if another supervisor has taken the run over. `block`: the run's
/// control block, mapped by the caller.
[[nodiscard]] liveness_report update_liveness(record& r, const shm::control_block& block);
/// "supervisor gone, 4 stages go on"; for 0: "supervisor gone, stages go on".
[[nodiscard]] std::string alone_text(u32 stages);

/// Maps the run's present control block read-only if it is not `watched`: a run that restarts keeps its name
/// and its id, but has new words and new memory. Returns nothing if the block is the same, or if there is
/// none at the moment (the caller keeps the old one mapped).
[[nodiscard]] std::optional<shm::segment> recreated_block(const record& r,
                                                          const shm::control_block& watched) noexcept;
/// "demo begins again with new memory"
[[nodiscard]] std::string recreated_text(const record& r);

}  // namespace carousel::run
