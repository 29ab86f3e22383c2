#pragma once
// Sends commands to the supervisor, polls the state of its stages twice per second, and requests the run's
// parameters once. A thread of this object talks to the socket, so that a slow, stopped or dead supervisor
// never blocks the window.

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "core/types.hpp"
#include "telemetry/snapshot.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_series.hpp"

namespace carousel::run {
struct parameter_state;
}  // namespace carousel::run

namespace carousel::viewer {

// GPU memory per process, as counted by the driver's management library (NVML). The library is loaded at run
// time; without it no value is known. In a container the driver may report pids of another namespace, or
// none. Use each object from one thread only. A query takes some milliseconds, so it must not be called in
// the window's thread.

class gpu_memory {
public:
    gpu_memory();
    ~gpu_memory();
    gpu_memory(const gpu_memory&) = delete;
    gpu_memory& operator=(const gpu_memory&) = delete;

    /// Bytes by pid, over all GPUs; empty if unknown.
    [[nodiscard]] std::map<u32, u64> by_pid() const;

private:
    void* library_ = nullptr;
};

// The stages of a pipeline and its other hosts, as this host's supervisor reports them (`ps`): states that
// the control block does not contain, and the stages of other hosts, whose blocks are not available here.

/// A process of a stage, or its vacant seat, of this host or another one. Empty fields: not known.
struct seat_report : run::ps_stage {
    std::string label;  ///< name of the process in commands: "fragment.1", "b/sink"
    u64 gpu_bytes = 0;  ///< on all GPUs of this host; 0: none, or unknown
    [[nodiscard]] bool is_paused() const noexcept { return state == "stopped"; }
    [[nodiscard]] std::optional<telemetry::stage_shares> shares() const noexcept;
};

struct host_report : run::ps_host {
    std::string text;                ///< all of it in words, as `ps` prints it
    std::vector<seat_report> seats;  ///< in the order of the pipeline file
    [[nodiscard]] bool is_there() const noexcept { return state == "running"; }
};

/// The stages of this host.
[[nodiscard]] std::vector<seat_report> seat_reports(const run::ps_answer& a);
/// The other hosts.
[[nodiscard]] std::vector<host_report> host_reports(const run::ps_answer& a);
/// The report on a seat of this host's control block, or null.
[[nodiscard]] const seat_report* report_of(const std::vector<seat_report>& all,
                                           const telemetry::snapshot& block, u32 seat) noexcept;
/// The events between two reports: a host that was lost or is back, a remote stage that was replaced. `now`:
/// their time, in ns.
[[nodiscard]] std::vector<telemetry::run_event> changes(const std::vector<host_report>& before,
                                                        const std::vector<host_report>& after, u64 now);

struct command {
    run::request what;
    u64 ticket = 0;  ///< chosen by the sender; returned with the reply
};
/// "kill fragment", "hang fragment", "set".
[[nodiscard]] std::string describe(const command& c);

struct reply {
    command asked;
    bool ok = false;
    std::string message;
    /// refused for a temporary reason: no room for another change until frames have used the pending ones
    bool later = false;
};

/// What `ps` reports of the whole run.
struct run_report {
    std::string state;                   ///< "running", "paused", "waiting", ...; "": not known yet
    std::string state_text;              ///< "waiting: fragment is down"
    std::vector<std::string> problems;   ///< sentences
    std::string limit_kind, limit_text;  ///< telemetry/bottleneck.hpp: "down", "fragment is down: ..."
};

class control_client {
public:
    control_client();
    ~control_client();
    control_client(const control_client&) = delete;
    control_client& operator=(const control_client&) = delete;

    /// Sets the supervisor to which requests are sent, and its run. If a supervisor of another run is at that
    /// path, it refuses the requests. "": none.
    void aim(const std::string& socket_path, const std::string& run_id);
    void send(command c);
    [[nodiscard]] std::vector<reply> take_replies();
    /// The stages of this host; empty: not known yet.
    [[nodiscard]] std::vector<seat_report> report();
    [[nodiscard]] run_report run_state();
    /// Additional names of rings: maps STAGE.OUTPUT of a stage's first output to the ring's name. As last
    /// reported.
    [[nodiscard]] std::map<std::string, std::string> other_ring_names();
    /// The other hosts of the pipeline; empty: there are none, or they are not known yet.
    [[nodiscard]] std::vector<host_report> hosts();
    /// Returns the supervisor's reply; nullopt: not known yet. The reply is requested every second until it
    /// arrives.
    [[nodiscard]] std::optional<run::parameter_state> parameters();
    /// Called if the run has a new control block: discards the earlier reply and requests the parameters
    /// again.
    void ask_parameters_again();
    /// Blocks until every command sent has been answered, or for `seconds`.
    void flush(f64 seconds);
    /// Sends one command in the caller's thread and blocks until the answer, at most 5 s. Never throws.
    [[nodiscard]] static reply ask(const std::string& path, const std::string& run_id, const command& c);

private:
    struct target {
        std::string path, run_id;
        bool operator==(const target&) const = default;
    };
    struct queued_command {
        target to;  ///< the target at the time when the command was given, so that no command is sent to
                    ///< another run that the window shows later
        command what;
    };
    /// Returns the thread's next request; after each request the thread checks again.
    enum class task : u8 { none, queued_command, parameters, ps };
    [[nodiscard]] task next_task() const;  ///< requires the mutex
    void loop();
    void forget_parameters();  ///< requires the mutex
    void ask_parameters(const target& to, u64 question);
    void ask_ps(const target& to, const gpu_memory& gpus);

    std::mutex mutex_;
    std::condition_variable wake_, idle_;
    target aim_;
    std::deque<queued_command> waiting_;
    std::vector<reply> replies_;
    std::vector<seat_report> report_;
    run_report run_state_;
    std::vector<host_report> hosts_;
    std::map<std::string, std::string> ring_names_;
    std::unique_ptr<run::parameter_state> parameters_;
    u64 question_ = 0;              ///< replies to an older request are discarded
    std::string reported_problem_;  ///< the last reported problem with this target's parameters
    u64 next_parameters_ns_ = 0, next_ps_ns_ = 0;
    bool stop_ = false, busy_ = false;
    std::thread thread_;
};

}  // namespace carousel::viewer
