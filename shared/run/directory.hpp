#pragma once
// Folder of a run, in which other processes find the run's socket, record, ledgers and logs:
//   $XDG_RUNTIME_DIR/carousel/NAME/   else   /tmp/carousel-UID/NAME/      (0700, owned by this user)
//     control.sock   SOCK_SEQPACKET: stages attach; `carousel kill` and other commands send requests
//     run.json       identity of the run: {pid, start_time, run_id, name, file, pid_namespace, boot_id,
//                    time_namespace, monotonic_offset_ns}
//     pipeline.json  the pipeline that runs (compatibility.hpp)
//     state.json     the supervisor's counters (process_table.hpp). A second supervisor reads both
//                    files after the first one has died.
//     recoveries.jsonl  cost of each crash (supervisor/stores/run_log.hpp)
//     dashboard.json the process that serves the web UI, with its token
//     fault-ENTRY    what a stage's process records about a fatal signal (fault_record.hpp)
//     port-SEAT-EPOCH.lock  locked by a port's program while it has memory of the run
//     lock           locked by the supervisor until it exits, and by the stages (shm/runtime_folder.hpp);
//                    ledger-*.bin, logs/, pictures/, dead-letters/ (dead_letter.hpp)
// The data that is kept after a run has lost its supervisor is in a separate folder (liveness.hpp).
// May be called from any process of the user. A record is written atomically (temporary file, rename) and
// removed with its folder. A pid and a start time identify a process only in the pid and time namespace, and
// the boot, in which they were read. A record from another namespace or boot is therefore judged by the locks
// of its run (shm/runtime_folder.hpp), which the kernel releases when the processes exit.

#include <optional>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/clock.hpp"
#include "core/types.hpp"
#include "shm/process_id.hpp"

namespace carousel::run {

struct record {
    shm::process_id supervisor;
    std::string run_id, name, file;
    std::string pid_namespace, boot_id;  ///< filled in by write_record
    std::string folder = {};             ///< the folder from which read_record read the record
    clock_identity clock = {};           ///< the clock of the supervisor; filled in by write_record
    [[nodiscard]] std::string socket() const;
};

/// Folder of all runs of this user; not created.
[[nodiscard]] std::string runs_folder();
/// Folder of the run of that name; not created.
[[nodiscard]] std::string run_folder(const std::string& name);
/// Path at which the supervisor of the run in that folder listens.
[[nodiscard]] std::string control_socket(const std::string& folder);
/// File that the program at a port keeps locked while it has memory of the run.
[[nodiscard]] std::string port_lock(const std::string& folder, u32 seat, u32 epoch);
/// Creates the folder of all runs and the run's folder, both with mode 0700. Throws as
/// shm::make_private_folder does.
std::string make_run_folder(const std::string& name);

/// Writes FOLDER/run.json atomically, mode 0600. Throws shm_error.
void write_record(const std::string& folder, record r);
/// Empty if there is no readable record.
[[nodiscard]] std::optional<record> read_record(const std::string& folder);

/// True if the record's pid and start time are valid here: same boot, and same pid and time namespace as the
/// supervisor.
[[nodiscard]] bool is_of_here(const record& r);
/// True if the record's supervisor is alive: checked by the supervisor's pid if is_of_here(r), and by the
/// folder's lock if not. Also true if that cannot be determined. `lock_is_ours`: the caller holds the
/// folder's lock.
[[nodiscard]] bool is_alive(const record& r, bool lock_is_ours = false);

/// All runs that have a record, alive or not, sorted by name.
[[nodiscard]] std::vector<record> recorded_runs();
/// The runs whose supervisor is alive, sorted by name.
[[nodiscard]] std::vector<record> living_runs();

// Record of the process that serves the web UI of `carousel run --http`, written by that process into the
// run's folder. Like the stages, the process survives a killed supervisor. The next supervisor reads the
// record and keeps the process, or starts another one with the same address and token: open browser pages and
// scrapers continue to work.

struct dashboard_record {
    shm::process_id process;
    std::string run_id;
    std::string asked;               ///< the text given to --http; "0" stands for any port
    std::vector<std::string> hosts;  ///< as given to --http-host
    http_address address;            ///< that it listens on
    std::string token;               ///< required by actions
};

/// Writes FOLDER/dashboard.json, mode 0600. Throws shm_error.
void write_dashboard_record(const std::string& folder, const dashboard_record& r);
/// Empty if there is no readable record.
[[nodiscard]] std::optional<dashboard_record> read_dashboard_record(const std::string& folder);
/// Terminates exactly that process: Sends SIGTERM, and after 1 s SIGKILL. Blocks for at most 2 s.
void end_dashboard(const shm::process_id& process) noexcept;
/// The address to open in a browser: "http://127.0.0.1:8080/?token=...".
[[nodiscard]] std::string dashboard_url(const http_address& address, const std::string& token);

}  // namespace carousel::run
