#pragma once
// Liveness of a run: whether the run has a supervisor, whether its stages continue without one, and whether
// and how the run has ended. `ps`, `down`, `clean`, the start of a run and the observers all use this check.
// The absence of a sign of life (a heartbeat, a pid of another namespace) never counts as death:
// `liveness::over` is proven by the run's locks, which the kernel keeps as long as the run's processes are
// alive. The supervisor holds the exclusive lock of the run's folder. Stages hold shared locks on the
// folder's lock file (shm/runtime_folder.hpp) and on the control block (shm/segment.hpp; a container may have
// a separate /dev/shm). A port's program holds the flock() of its own file, FOLDER/port-SEAT-EPOCH.lock.
// Read-only. A run is identified by (folder, run id), because the same folder may belong to several runs, one
// after the other. May be called from any process of the user, on any thread.

#include <string>
#include <vector>

#include "core/json.hpp"
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
    u32 count = 0;  ///< 0 although `any` is set: the stages cannot be counted from here (another pid or time
                    ///< namespace)
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
/// Returns "no supervisor, 4 stages continue"; for 0: "no supervisor, stages continue".
[[nodiscard]] std::string alone_text(u32 stages);

/// Maps the run's present control block read-only if that block is another one than `watched`: a run that
/// restarts keeps its name and its id, but has new words and new memory. Returns nothing if the block is the
/// same, or if the run has no block at the moment (the caller keeps the old block mapped).
[[nodiscard]] std::optional<shm::segment> recreated_block(const record& r,
                                                          const shm::control_block& watched) noexcept;
/// Returns "demo restarts with new memory".
[[nodiscard]] std::string recreated_text(const record& r);

// Lost runs: a run is lost if its supervisor died and no other supervisor took it over. The data known about
// it is kept, so that its log lines, its crashes and its account outlive every process of the run:
//   $XDG_RUNTIME_DIR/carousel-lost/NAME.RUN_ID/   else   /tmp/carousel-UID-lost/NAME.RUN_ID/
//                       (0700, owned by this user)
//     account.json      what the run delivered, from its ledgers and its control block (account_of)
//     logs/             log lines of its supervisor and stages, also from the time without a supervisor
//     recoveries.jsonl, state.json, pipeline.json   files of the run's folder, unchanged
// Before a process removes the run's folder, it saves this data here. That process is the last stage of the
// run (runner/supervisor_link.hpp), the next start of a run of that name, or `carousel clean`; it holds the
// run's lock, or knows that no process of the run is alive. Files are moved by rename(2) within one file
// system; account.json is written atomically before the first move. A crash between any two steps leaves the
// remaining files in the run's folder, and the next call continues.
// The number and size of lost runs are limited: the newest `most_lost_runs` are kept, each with at most
// `most_lost_bytes`; the oldest logs are removed first.

inline constexpr std::size_t most_lost_runs = 10;
inline constexpr u64 most_lost_bytes = u64{64} << 20U;

struct lost_run {
    std::string folder;
    std::string name, run_id;
    nlohmann::json account;  ///< null if it cannot be read
    [[nodiscard]] std::string logs() const { return folder + "/logs"; }
};

/// Returns the account of the run in that folder. `block` is the run's control block; null if it does not
/// exist any more. A part that cannot be read is omitted. Keys: name, run_id, file, supervisor_pid, lost_at
/// (UTC), silent_s (seconds since the supervisor's last heartbeat; null without a block), first_frame,
/// frames_planned (null: no `frames`), sinks [{stage, delivered, first_missing, repeated}], stages [{name,
/// frames, tombstones, torn}], why. `first_missing` of a sink with `every` may be a frame that no source has
/// begun.
[[nodiscard]] nlohmann::json account_of(const std::string& run_folder, const shm::control_block* block);

/// Moves the known data of the run in that folder to the lost runs, and removes the oldest lost runs beyond
/// the limit. `block`: the run's control block; null: the block of the record's run id is used, if it still
/// exists. Returns the folder of the lost run; "" if the folder has no record of a run, or nothing could be
/// kept (a full disk): the caller continues. Never throws.
std::string keep_lost_run(const std::string& run_folder, const shm::control_block* block = nullptr) noexcept;

/// Folder of the lost runs that belongs to the given folder of runs.
[[nodiscard]] std::string lost_runs_folder(const std::string& runs);
/// The lost runs of this user with that name ("": with any name), newest first.
[[nodiscard]] std::vector<lost_run> lost_runs(const std::string& name = "");
/// "demo: lost at 2026-01-31T12:00:00Z; sink delivered 26 of 150 frames; its supervisor (pid 17) died, ...;
/// kept in F"
[[nodiscard]] std::string describe(const lost_run& r);

}  // namespace carousel::run
