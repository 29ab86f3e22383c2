#pragma once
// Lost runs: a run is lost if its supervisor died and no other supervisor took it over. The data known about
// it is kept, so that its log lines, its crashes and its account outlive every process of the run:
//   $XDG_RUNTIME_DIR/carousel-lost/NAME.RUN_ID/   else   /tmp/carousel-UID-lost/NAME.RUN_ID/
//                       (0700, owned by this user)
//     account.json      what the run delivered, from its ledgers and its control block (account_of)
//     logs/             log lines of its stages and of its supervisor, also those without a supervisor
//     recoveries.jsonl, state.json, pipeline.json   files of the run's folder, unchanged
//
// The process that removes the run's folder first keeps this data: the last stage of the run
// (runner/orphan_cleanup.hpp), the next start of a run of that name, or `carousel clean`. That process holds
// the run's lock, or knows that no process of the run is alive. Files are moved by rename(2) within one file
// system; account.json is written atomically before the first move. A crash between any two steps leaves the
// remaining files in the run's folder, and the next call continues.
//
// Bounded: the newest `most_lost_runs` are kept, each with at most `most_lost_bytes`; the oldest logs are
// removed first.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "shm/control_block.hpp"

namespace carousel::run {

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
/// frames, tombstones, torn}], why.
[[nodiscard]] nlohmann::json account_of(const std::string& run_folder, const shm::control_block* block);

/// Moves the known data of the run in that folder to the lost runs, and removes the oldest lost runs beyond
/// the limit. `block`: its control block; null: the block of the record's run id is used, if it still exists.
/// Returns the folder of the lost run; "" if the folder has no record of a run, or nothing could be kept (a
/// full disk): the caller continues. Never throws.
std::string keep_lost_run(const std::string& run_folder, const shm::control_block* block = nullptr) noexcept;

/// Folder of the lost runs that belongs to the given folder of runs.
[[nodiscard]] std::string lost_runs_folder(const std::string& runs);
/// The lost runs of this user with that name ("": with any name), newest first.
[[nodiscard]] std::vector<lost_run> lost_runs(const std::string& name = "");
/// "demo: lost at 2026-01-31T12:00:00Z; sink delivered 26 of 150 frames; its supervisor (pid 17) died, ...;
/// kept in F"
[[nodiscard]] std::string describe(const lost_run& r);

}  // namespace carousel::run
