#pragma once
// Lost runs: a run is lost if its supervisor died and no other supervisor took it over. What is known of it
// is kept, so that its log lines, its deaths and its account outlive every process of the run:
//   $XDG_RUNTIME_DIR/carousel-lost/NAME.RUN_ID/   else   /tmp/carousel-UID-lost/NAME.RUN_ID/   (0700, ours)
//     account.json      what the run delivered, from its ledgers and its control block (account_of)
//     logs/             the lines of its stages and of its supervisor, also those written without one
//     recoveries.jsonl, state.json, pipeline.json   the files of the run's folder, as they were
//
// The process that is about to remove the run's folder keeps it first: the last stage of the run
// (runner/orphan_cleanup.hpp), the next start of that name, or `carousel clean`. It holds the run's lock, or
// knows that no process of the run lives. Files are moved by rename(2) within one file system, account.json
// is written whole before the first of them: a crash between any two steps leaves the rest in the run's
// folder, and the next call continues.
//
// Bounded: the newest `most_lost_runs` stay, each with at most `most_lost_bytes`; the oldest logs go first.

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
    nlohmann::json account;  ///< null if it can't be read
    [[nodiscard]] std::string logs() const { return folder + "/logs"; }
};

/// What is known of the run in that folder; `block` is its control block, null if that is gone. A part that
/// can't be read is left out. Keys: name, run_id, file, supervisor_pid, lost_at (UTC), silent_s (since the
/// supervisor's last sign of life; null without a block), frames_planned (null: no `frames`), sinks [{stage,
/// delivered, first_missing, repeated}], stages [{name, frames, voids, torn}], why.
[[nodiscard]] nlohmann::json account_of(const std::string& run_folder, const shm::control_block* block);

/// Moves what is known of the run in that folder to where lost runs are kept, and removes the oldest ones
/// beyond the bound. `block`: its control block; null: the one of the record's run id, if it is still there.
/// Returns the folder of the lost run; "" if the folder has no record of a run, or nothing could be kept (a
/// full disk): the caller continues. Never throws.
std::string keep_lost_run(const std::string& run_folder, const shm::control_block* block = nullptr) noexcept;

/// Where they are kept, for runs below that folder of runs.
[[nodiscard]] std::string lost_runs_folder(const std::string& runs);
/// Those of this user, the newest first; of that name, "" of all.
[[nodiscard]] std::vector<lost_run> lost_runs(const std::string& name = "");
/// "demo: lost at 2026-01-31T12:00:00Z, after 26 of 150 frames: its supervisor (pid 17) died, ...; kept in F"
[[nodiscard]] std::string describe(const lost_run& r);

}  // namespace carousel::run
