#pragma once
// Whether a run lives: does it have a supervisor, do its stages go on alone, has it ended and how? The one
// judgement for `ps`, `down`, `clean`, a start and those who watch. Nothing that only fails to show itself (a
// heartbeat, a pid of another namespace) counts as dead: `life::over` is proven by the run's locks, which the
// kernel keeps as long as its processes live (folder_lock.hpp, shm/segment.hpp). Reads only. A run's identity
// is (folder, run id): another run in the same folder is another run. Any process of the user, any thread.

#include <string>
#include <vector>

#include "run/directory.hpp"
#include "shm/control_block.hpp"
#include "shm/segment.hpp"

namespace carousel::run {

enum class liveness : u8 {
    led,    ///< it has a supervisor
    alone,  ///< its supervisor is gone, stages go on: another one may take them over
    over,
};
/// `over` only if no process of the run can be left: neither a supervisor, a stage or a port's program, nor a
/// child that one of them has forked. `lock_is_ours`: the caller holds the lock of the run's folder.
[[nodiscard]] liveness liveness_of(const record& r, bool lock_is_ours = false);

/// Stages that go on without their supervisor.
struct orphaned_stages {
    bool any = false;
    u32 count = 0;  ///< 0: some go on that can't be counted from here (another pid or time namespace)
};
/// Of a run whose supervisor is gone.
[[nodiscard]] orphaned_stages orphaned_stages_of(const record& r);

/// Those that can be watched: their supervisor lives, or stages go on without it. Sorted by name.
[[nodiscard]] std::vector<record> watchable_runs();

struct liveness_report {
    liveness state = liveness::led;
    u32 stages = 0;      ///< alone: as in orphaned_stages::count
    std::string ending;  ///< over: "exit code 0"
};
/// `r` becomes the record of a supervisor that has taken the run over. `block`: its control block, as long as
/// it is mapped.
[[nodiscard]] liveness_report update_liveness(record& r, const shm::control_block& block);
/// "supervisor gone, 4 stages go on"; 0: "supervisor gone, stages go on"
[[nodiscard]] std::string alone_text(u32 stages);

/// The block that the run has now, mapped for reading, if it is another one than `watched`: a run that begins
/// again keeps its name and its id, but its words and its memory are made anew. Empty: it is the same, or
/// there is none just now (the old one stays mapped).
[[nodiscard]] std::optional<shm::segment> recreated_block(const record& r,
                                                          const shm::control_block& watched) noexcept;
/// "demo begins again with new memory"
[[nodiscard]] std::string recreated_text(const record& r);

}  // namespace carousel::run
