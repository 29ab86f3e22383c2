#pragma once
// Where a run keeps its socket, its record, its ledgers and its logs, and how others find it:
//   $XDG_RUNTIME_DIR/carousel/NAME/   else   /tmp/carousel-UID/NAME/      (0700, ours)
//     control.sock   SOCK_SEQPACKET: stages attach, `carousel kill` and the like ask
//     run.json       who runs here: {pid, start_time, run_id, name, file, pid_namespace, boot_id,
//     time_namespace,
//                    monotonic_offset_ns}
//     pipeline.json  what runs here (run_identity.hpp), state.json what its supervisor has counted
//                    (seat_state.hpp): for a second supervisor, when the first one dies
//     recoveries.jsonl  what each death cost (supervisor/stores/recovery_log.hpp)
//     dashboard.json the process that serves the web UI, with its token (dashboard_record.hpp)
//     port-SEAT-EPOCH.lock  held by a port's program as long as it has memory of the run
//     lock           held by the supervisor for life, and by the stages (folder_lock.hpp); ledger-*.bin,
//                    logs/, pictures/, dead-letters/ (dead_letter.hpp)
// What is kept of a run that lost its supervisor is in a folder next to these (lost_run.hpp).
//
// Who may call: any process of the user. A record is written whole (temporary file, rename) and removed with
// its folder. A pid and a start time identify a process only in the pid and time namespace, and the boot, in
// which they were read: a record of another one is judged by the locks of its run (folder_lock.hpp), which
// the kernel releases with the processes.

#include <optional>
#include <string>
#include <vector>

#include "core/clock_identity.hpp"
#include "core/types.hpp"
#include "shm/process_id.hpp"

namespace carousel::run {

struct record {
    shm::process_id supervisor;
    std::string run_id, name, file;
    std::string pid_namespace, boot_id;  ///< filled in by write_record
    std::string folder = {};             ///< where read_record found it
    clock_identity clock = {};           ///< of the supervisor; filled in by write_record
    [[nodiscard]] std::string socket() const;
};

/// Folder of all runs of this user; not made.
[[nodiscard]] std::string runs_folder();
/// Folder of the run of that name; not made.
[[nodiscard]] std::string run_folder(const std::string& name);
/// Where the supervisor of the run with that folder listens.
[[nodiscard]] std::string control_socket(const std::string& folder);
/// What the program on a port's seat holds a lock on, as long as it has memory of the run.
[[nodiscard]] std::string port_lock(const std::string& folder, u32 seat, u32 epoch);
/// Makes a folder of this user, mode 0700, or checks the one that is there. Throws shm_error: it is another
/// user's, not a folder, or can't be made.
void make_private_folder(const std::string& folder);
/// Makes both, mode 0700. Throws shm_error when one is another user's, no folder, or can't be made.
std::string make_run_folder(const std::string& name);

/// Writes a file of the run's runtime directory whole (temporary file, rename), mode 0600: a reader
/// finds the old text or the new one, also when the writer is killed in the middle. Throws shm_error.
void write_whole_file(const std::string& path, const std::string& text);
/// Writes FOLDER/run.json atomically, mode 0600. Throws shm_error.
void write_record(const std::string& folder, record r);
/// Empty: there is none, or none that can be read.
[[nodiscard]] std::optional<record> read_record(const std::string& folder);

/// True if the record's pid and start time mean here what they mean to its supervisor: same boot, same pid
/// and time namespace.
[[nodiscard]] bool is_of_here(const record& r);
/// True if the record's supervisor lives: by its pid if the record is of here, otherwise by the folder's
/// lock. True also if that can't be determined. `lock_is_ours`: the caller holds the folder's lock.
[[nodiscard]] bool is_alive(const record& r, bool lock_is_ours = false);

/// All runs that have a record, living or not, sorted by name.
[[nodiscard]] std::vector<record> recorded_runs();
/// The runs that live, sorted by name.
[[nodiscard]] std::vector<record> living_runs();

/// True for a name that can be a folder's: letters, digits, - _ and inner dots, at most 40.
[[nodiscard]] bool is_run_name(const std::string& name) noexcept;

}  // namespace carousel::run
