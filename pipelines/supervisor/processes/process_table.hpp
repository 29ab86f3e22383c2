#pragma once
// The seats (instance slots) of a run and the processes on them, as plain data. Decisions are in policy/,
// stored data is in stores/. The actions are in the files next to this one, one subject per file:
//   start.hpp           starting a process, its handshake   standby.hpp        warm standbys
//   start_over.hpp      standbys that a rebuild keeps
//   process_events.hpp  every event of a process: its       port_seats.hpp     external programs on ports
//                       exit, socket, deadline, notes       mps_seats.hpp      those that share an MPS domain
//   retire.hpp          its end, as policy/retirement.hpp   adoption.hpp       a second supervisor
//                       decides, and the consequences       seat_commands.hpp  user commands
//   watch.hpp           deadlines, ticks, why a run stands still
//   fault_reports.hpp   backtraces of dead processes        debug_leases.hpp   `carousel debug`
//
// The state that exists only in this process is saved for a second supervisor (state_json()). One thread;
// nothing in any of these files blocks.

#include <nlohmann/json_fwd.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/seat_counters.hpp"
#include "core/described.hpp"
#include "os/event_loop.hpp"
#include "os/log_pipe.hpp"
#include "ring/check/block_check.hpp"
#include "ring/recovery.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/policy/fallback_policy.hpp"
#include "supervisor/policy/mps_policy.hpp"
#include "supervisor/policy/retirement.hpp"
#include "supervisor/policy/state_table.hpp"
#include "supervisor/processes/cgroup_watch.hpp"
#include "supervisor/processes/fault_reports.hpp"
#include "supervisor/stores/ledger_store.hpp"
#include "supervisor/stores/memory_store.hpp"
#include "supervisor/stores/run_log.hpp"

namespace carousel::supervisor {

class checkpoint_store;
class mps_domain;

/// A process's membership in an MPS domain (mps_policy.hpp).
struct domain_part {
    u32 generation = 0;        ///< generation of the domain that the process is a client of: the serving one,
                               ///< or for a standby the spare one; 0: the process has its own GPU context
    bool terminating = false;  ///< terminate_client was requested, and has not answered
    bool terminated = false;   ///< terminate_client has ended all work of the process
    bool breaks = false;       ///< the death of the process ends the domain
    bool broke = false;        ///< the death was handled as the end of the domain
    bool with_domain = false;  ///< the process was ended because its domain ends
    bool moved = false;  ///< the process is ended so that its successor works in the domain, or in a context
                         ///< of its own
    bool excused = false;  ///< the death of the process is not blamed on the process
};

/// One process. While the process works, it is in seat::now. From the time when its entry is doomed until its
/// retirement is complete, it is in seat::gone.
struct process {
    ring::incarnation_id incarnation;
    i32 pid = 0;
    /// start time of the process, set when it is ready; 0 for a port's program, which is not identified by
    /// its start time
    u64 start_time = 0;
    shm::unique_fd pidfd;       ///< pidfd of the process that works
    shm::unique_fd tool_pidfd;  ///< pidfd of a tool (gdb ...) that started the stage, set after the stage has
                                ///< attached
    i32 group = 0;              ///< the process group created for the process; 0: none
    int connection = -1;        ///< the process's liveness socket, owned by the engine
    bool by_hand = false, tool = false;
    bool stuck = false;         ///< its GPU has kept it from ending, which is counted as a GPU error
    bool on_gpu = false;        ///< it was started on a GPU, also if its stage is on the CPU by now
    u32 debuggers = 0;          ///< number of `carousel debug` commands (debug_leases.hpp)
    bool port = false;          ///< an external program (port_seats.hpp): never signalled
    bool elsewhere = false;     ///< the pid is one of another pid namespace: it is only displayed
    bool has_detached = false;  ///< the program of a port, or a standby that starts over, has unmapped all
                                ///< memory of the run, and continues to run
    bool standing_by = false;   ///< a standby that has reported that it is ready to take over
    bool starts_over = false;   ///< a standby that a rebuild keeps (start_over.hpp)
    log_pipe log;
    u64 spawned_ns = 0, attached_ns = 0, ready_ns = 0, signalled_ns = 0, seen_dead_ns = 0, ended_ns = 0;
    domain_part mps;

    // Its end.
    retirement_step step = retirement_step::working;
    death how;
    int user_signal = 0;   ///< sent by `carousel kill`: a death by this signal counts as a death from
                           ///< outside, whichever signal it is
    bool leaving = false;  ///< the process has closed its connection and is not dead yet; it will exit by
                           ///< itself
    /// true if the process was alive when the supervisor decided to end it, because of a deadline, `restart`
    /// or `down`
    bool by_supervisor = false;
    bool counted = false;  ///< the death is included in the account
    bool kill_sent = false, ended = false;
    bool judged = false;       ///< the restart policy has been applied
    bool requeued = false;     ///< the frames of the process have been requeued at least once
    bool cpu_counted = false;  ///< seat::counters has the CPU time of the process
    ring::blame why = ring::blame::none;
    std::vector<u64> sequences;  ///< frames in flight when the death was detected
    /// Number of job words that were damaged when the death was detected; each of these words may have stood
    /// for a frame whose number is unknown.
    u32 unknown_frames = 0;
    std::vector<u64> committed;  ///< frames whose job words were still COMMITTED when they were revoked
    u32 quarantined = 0;         ///< number of buffers in quarantine until the end of the process
    std::string wild_write;      ///< see process_events.hpp
};

/// True if no deadline counts for the process, because a user's tool may stop it at any time.
[[nodiscard]] inline bool is_under_tool(const process& p) noexcept { return p.tool || p.debuggers > 0; }

/// Number of frames that the death may have affected; if a job word is unreadable, no single frame can be
/// blamed.
[[nodiscard]] inline u32 frames_in_flight(const process& p) noexcept {
    return static_cast<u32>(p.sequences.size()) + p.unknown_frames;
}

struct seat {
    u32 index = 0, stage = 0, instance = 0;
    std::string label;  ///< "fragment", or "fragment.1"
    seat_machine machine;
    std::unique_ptr<process> now;
    std::vector<std::unique_ptr<process>> gone;
    ring::incarnation_id successor;    ///< the entry appointed for a process that is not spawned yet
    std::unique_ptr<process> standby;  ///< a warm standby for the process in `now`
    u64 standby_due_ns = 0, standby_delay_ns = 0;
    bool by_standby = false;  ///< the present holder of the seat was the standby of the previous holder
    /// time of the last holder's death, from which the report's takeover time counts; 0 after the holder's
    /// successor has committed
    u64 vacant_since_ns = 0;
    i32 vacant_pid = 0;  ///< pid of the holder that died
    u32 vacant_epoch = 0;
    /// true if a start was postponed because descriptors, processes, threads or memory are short; this is
    /// logged once
    bool start_short = false;
    /// why the last start was postponed; "": no start was postponed in the present shortage
    std::string shortage;
    bool start_wanted = false;  ///< a process must be spawned at due_ns
    u64 due_ns = 0;
    std::unique_ptr<log_sink> log;
    std::vector<i32> pids;  ///< pids of the newest processes on this seat; remember() adds one
    u32 restarts = 0;
    /// for the metrics; the CPU time here is that of the processes that have been fenced
    run::seat_counters counters;
    std::string last_exit;
    i32 last_exit_pid = 0;   ///< pid of the process whose end last_exit describes
    u64 clock_base_ns = 0;   ///< no deadline counts time before this time
    u64 device_base_ns = 0;  ///< the deadline of a frame on the device does not count time before this time
    u64 sampled_cpu_ns = 0, sampled_at_ns = 0;
    f64 cpu_percent = 0;
    u64 depth = 0;  ///< the last depth (telemetry/depth.hpp) that a process of the seat has reported; 0: none

    static constexpr std::size_t kept_pids = 2000;  ///< the minimum number kept. The bound keeps this list
                                                    ///< and the file small even in a run that lasts for weeks
                                                    ///< and has one death per second
    void remember(i32 pid) {
        if (pids.size() >= 2 * kept_pids) pids.erase(pids.begin(), pids.end() - kept_pids);
        pids.push_back(pid);
    }
};
using seat_list = std::vector<std::unique_ptr<seat>>;

/// The death that ended the run.
struct root_cause {
    std::string label, what;
    int exit_code = 1;
    std::vector<std::string> last_lines;
};

struct tombstone_frame {
    u64 ring_sequence = 0;
    std::string stage, reason;
};

/// Why the standby of a seat did not take over.
enum class why_no_standby : u8 {
    none,      ///< the last standby had been used or had died, and the next standby was not started yet
    starting,  ///< the standby had not reported that it was ready
    untried,   ///< the standby was ready, but the holder had delivered no frame; in this case a fresh process
               ///< is started after a delay, because a standby would bypass the delays
};

/// Counts of deaths, for the report.
struct death_account {
    u64 kills_at[5] = {};  ///< by ring::job_state
    u64 deaths = 0, restarts = 0;
    u64 promoted = 0;        ///< number of successors that were warm standbys
    u64 no_standby[3] = {};  ///< number of deaths after which no standby took over, indexed by why_no_standby
    u64 domain_faults = 0;   ///< number of times that the MPS domain was renewed
    u64 domain_ends = 0;     ///< number of times that a restored domain ended; renewals before the domain is
                             ///< restored again belong to the same end
    bool domain_restored = true;             ///< all stages of the domain have restarted since its last end
    bool domain_abandoned = false;           ///< the domain was given up: its stages have their own GPU
                                             ///< contexts
    std::vector<u32> domain_blamed;          ///< stages that caused the domain's faults (mps_policy.hpp)
    std::vector<tombstone_frame> abandoned;  ///< the newest thousand abandoned frames
    u64 abandoned_before = 0;                ///< number of abandoned frames that are no longer in `abandoned`
};

/// An action that becomes necessary during another action: settle() carries it out afterwards, in the order
/// of arrival.
struct work {
    enum class kind : u8 {
        retire,        ///< retire the process `incarnation` of `seat`
        start,         ///< start a process for `seat`
        renew_domain,  ///< renew the MPS domain's server and daemon, whose clients are all condemned
    };
    kind what = kind::retire;
    u32 seat = 0;
    ring::incarnation_id incarnation;
};

struct process_table {
    process_table(const run_setup& s, event_loop& l, console& out);
    ~process_table();
    process_table(const process_table&) = delete;
    process_table& operator=(const process_table&) = delete;

    /// Uses this control block and memory from now on. Call it when no process is left, except detached
    /// standbys, and revoked programs of ports, which continue to be retired in this block. `published`: a
    /// copy of the block as it was published. Static parts are read from this copy, since a broken process
    /// may write into the block. Null: they are read from the block.
    void attach_to(shm::control_block& block, const memory_store& kept,
                   const shm::control_block* published = nullptr);
    /// Finds the seats of "stage" or "stage.N". If there is no such seat, throws a config_error that lists
    /// the seats.
    [[nodiscard]] std::vector<seat*> find(const std::string& name) const;
    [[nodiscard]] bool all_gone() const noexcept;
    /// True if no process is left except standbys.
    [[nodiscard]] bool holders_gone() const noexcept;
    [[nodiscard]] std::vector<std::string> unended_processes() const;
    /// True if the stage has processed every frame of the run.
    [[nodiscard]] bool has_all_frames(u32 stage) const noexcept;
    /// True if the stage has, in addition, written its last state, if it has to.
    [[nodiscard]] bool through(u32 stage) const noexcept;
    /// True if a process of the stage that has ended in this way needs no successor. A process that has
    /// exited with 0 after the last frame needs none, even if the disk has not taken its last state.
    [[nodiscard]] bool has_finished(u32 stage, const death& how) const noexcept;
    /// Adds the CPU time of all processes to seat::counters. To be called before the control block is
    /// replaced, because a process may have ended without being fenced in the old block.
    void count_cpu() noexcept;
    /// Records a fatal failure of something other than a stage.
    void fail(const std::string& label, const std::string& what, int code);
    /// Writes a message of the supervisor to the console and to DIR/logs.
    void log_line(const std::string& text) const;
    /// Records an event of a process for observers of the run.
    void note(const char* kind, u64 time_ns, const seat& s, const process& p, std::string text);

    const run_setup* setup;
    event_loop* loop;
    console* out;
    shm::control_block* c = nullptr;
    const shm::control_block* made = nullptr;  ///< the static parts of the block are read from here
    /// END as the engine has set it; the block's own word for END is not authoritative
    std::optional<u64> end;
    const memory_store* memory = nullptr;
    seat_list seats;
    std::deque<work> todo;
    bool settling = false;
    std::optional<root_cause> failure;
    death_account account;
    run_notes notes;
    recovery_log recoveries;
    ledger_store ledgers;
    const checkpoint_store* checkpoints = nullptr;  ///< null: the run has none
    mps_domain* domain = nullptr;                   ///< null: every stage has a GPU context of its own
    bool renewing = false;                          ///< the domain's next generation is not ready yet
    u32 renewed = 0;                                ///< the generation that is ended, or was ended last
    u64 renewal_due_ns = 0;  ///< until then the renewal waits for R2 of all clients; 0: it does not wait
    fault_row faults;        ///< counts the domain's faults
    mps_trial trial;         ///< finds the stage that causes the domain's faults
    std::vector<gpu_error> gpu_errors;  ///< of processes that have died since device_switch::watch()
    bool may_leave_gpu = false;         ///< stages of the run can move to the CPU
    /// while paused: the stages leave a GPU that is known to have failed
    bool device_failed = false;
    std::vector<shm::unique_fd> abandoned_pidfds;  ///< pidfds (abandoned_processes.hpp)
    bool ending = false;                           ///< the run ends: no process is started any more
    bool paused = false;                           ///< memory and words are being rebuilt
    bool words_intact = true;                      ///< while paused: no damage of the block's words is known
    u64 paused_ns = 0;                             ///< when the pause began
    u64 holders_gone_ns = 0;  ///< while paused: since when no process is left except standbys; 0: one is
    /// descriptor of the control block, sent to programs that cannot open the block by name
    int block_fd = -1;
    bool memory_there = true;  ///< processes may be started and accepted
    u64 last_tick_ns = 0;
    u64 orphans_due_ns = 0;
    cgroup_watch groups;
    std::size_t label_width = 8;        ///< width of the text before the bar of a log line
    std::unique_ptr<log_sink> journal;  ///< messages of the supervisor
    fault_reports faults_of_processes;
};

// State that exists only in the supervisor's memory, as JSON for its successor; all other state is in the
// control block. If the supervisor is killed, the file may be one event older than the block; where the two
// differ, the block is authoritative (adoption.hpp).

/// The data in the file about one process.
struct process_record {
    u32 entry = shm::none, epoch = 0;
    i32 pid = 0;
    u64 start_time = 0, spawned_ns = 0, signalled_ns = 0, seen_dead_ns = 0;
    int user_signal = 0;
    bool by_hand = false, tool = false, by_supervisor = false, counted = false, judged = false;
    bool cpu_counted = false;
    bool outside = false, restart_requested = false, deadline = false, was_ready = false;
    bool with_domain = false;
    bool on_gpu = false;
    /// generation of the MPS domain; none: the file has no such value
    u32 domain = shm::none;
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(process_record, (),
                      (entry, epoch, pid, start_time, spawned_ns, signalled_ns, seen_dead_ns, user_signal,
                       by_hand, tool, by_supervisor, counted, judged, cpu_counted, outside, restart_requested,
                       deadline, was_ready, with_domain, on_gpu, domain))
using process_records = std::vector<std::vector<process_record>>;  ///< by seat

/// Returns the CPU time that the process has reported at its last heartbeat; 0 if it is already in
/// seat::counters.
[[nodiscard]] u64 uncounted_cpu_ns(const process_table& t, const process& p) noexcept;
/// Returns the counters of the seat including the CPU time of processes that are not fenced yet.
[[nodiscard]] run::seat_counters counters_of(const process_table& t, const seat& s);

[[nodiscard]] nlohmann::json state_json(const process_table& t);
/// Returns a value that changes whenever the result of state_json() changes.
[[nodiscard]] u64 fingerprint(const process_table& t) noexcept;
/// Restores what state_json() returned. Returns the data in the file about each seat's processes. Throws
/// json::exception if the file has a missing or wrong value; the caller continues without it.
[[nodiscard]] process_records restore_state(process_table& t, const nlohmann::json& state);

}  // namespace carousel::supervisor
