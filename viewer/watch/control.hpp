#pragma once
// Sends commands to the supervisor, polls the state of its stages twice per second, and requests the run's
// parameters once. A thread of this object uses the socket, so that a slow, stopped or dead supervisor never
// blocks the window.

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
// time; without it, no values are available. In a container the driver may report pids of another namespace,
// or none. Use each object from one thread only. A query takes some milliseconds, so it must not be called in
// the window's thread.

class gpu_memory {
public:
    gpu_memory();
    ~gpu_memory();
    gpu_memory(const gpu_memory&) = delete;
    gpu_memory& operator=(const gpu_memory&) = delete;

    /// Returns the bytes for each pid, summed over all GPUs; empty if they are unknown.
    [[nodiscard]] std::map<u32, u64> by_pid() const;

private:
    void* library_ = nullptr;
};

// The stages and the other hosts of a pipeline, as this host's supervisor reports them (`ps`). The reports
// contain states that the control block does not contain, and the stages of other hosts, whose control blocks
// are not available here.

/// A process of a stage, or a vacant seat of a stage, on this host or another one. A field is empty if its
/// value is not known.
struct seat_report : run::ps_stage {
    std::string label;  ///< name of the process in commands: "fragment.1", "b/sink"
    u64 gpu_bytes = 0;  ///< GPU memory of the process, summed over all GPUs of this host; 0: none, or unknown
    [[nodiscard]] bool is_paused() const noexcept { return state == "stopped"; }
    [[nodiscard]] std::optional<telemetry::stage_shares> shares() const noexcept;
};

struct host_report : run::ps_host {
    std::string text;                ///< the whole report in words, as `ps` prints it
    std::vector<seat_report> seats;  ///< the stages, in the order of the pipeline file
    [[nodiscard]] bool is_there() const noexcept { return state == "running"; }
};

/// Returns the stages of this host.
[[nodiscard]] std::vector<seat_report> seat_reports(const run::ps_answer& a);
/// The other hosts.
[[nodiscard]] std::vector<host_report> host_reports(const run::ps_answer& a);
/// Returns the report on a seat of this host's control block, or null.
[[nodiscard]] const seat_report* report_of(const std::vector<seat_report>& all,
                                           const telemetry::snapshot& block, u32 seat) noexcept;
/// Returns the events between two reports: a host was lost or is back, or a remote stage was replaced. `now`
/// is the time of these events, in ns.
[[nodiscard]] std::vector<telemetry::run_event> changes(const std::vector<host_report>& before,
                                                        const std::vector<host_report>& after, u64 now);

struct command {
    run::request what;
    u64 ticket = 0;  ///< a number that the sender chooses; the reply contains it too
};
/// "kill fragment", "hang fragment", "set".
[[nodiscard]] std::string describe(const command& c);

/// What a viewer may send to a run.
enum class client_access : u8 {
    full,       ///< every command
    read_only,  ///< only requests that change neither the run nor its parameters
};
/// The reason that a read-only viewer gives for a disabled control and for a command that it has not sent.
inline constexpr const char* read_only_text = "read-only (--read-only): no command is sent to the run";
/// True for requests that a read-only viewer may send.
[[nodiscard]] bool only_reads(const run::request& r) noexcept;

struct reply {
    command asked;
    bool ok = false;
    std::string message;
    /// the refusal is temporary: there is no room for another change until frames have used the pending
    /// changes
    bool later = false;
};

/// The part of the `ps` report that describes the run as a whole.
struct run_report {
    std::string state;                   ///< "running", "paused", "waiting", ...; "": not known yet
    std::string state_text;              ///< "waiting: fragment is down"
    std::vector<std::string> problems;   ///< sentences
    run::ps_fallback off_gpu;            ///< stages on the CPU instead of their GPU
    std::string limit_kind, limit_text;  ///< telemetry/bottleneck.hpp: "down", "fragment is down: ..."
};

/// The newest `ps` answer of the run. Without a supervisor, that of the last one: its counters are still
/// valid, and they do not change until a supervisor follows.
struct last_report {
    run::ps_pipeline whole;
    std::vector<seat_report> seats;
};

class control_client {
public:
    /// A read-only client sends no request for which only_reads() is false. This is checked here and not in
    /// the controls that request a command, so that no control can be forgotten.
    explicit control_client(client_access a = client_access::full);
    ~control_client();
    control_client(const control_client&) = delete;
    control_client& operator=(const control_client&) = delete;

    /// Sets the run, and the socket of the supervisor to which requests are sent ("": there is none). If a
    /// supervisor of another run listens at this socket, it refuses the requests.
    void aim(const std::string& socket_path, const std::string& run_id);
    /// Queues the command. A read-only client answers a command that it may not send with a refusal.
    void send(command c);
    [[nodiscard]] std::vector<reply> take_replies();
    /// The stages of this host; empty: not known yet.
    [[nodiscard]] std::vector<seat_report> report();
    [[nodiscard]] run_report run_state();
    /// Returns nullopt if the run has not answered yet.
    [[nodiscard]] std::optional<last_report> last_known();
    /// Returns the additional names of rings, as last reported: a map from STAGE.OUTPUT, which also names a
    /// stage's first output, to the ring's name.
    [[nodiscard]] std::map<std::string, std::string> other_ring_names();
    /// Returns the other hosts of the pipeline; empty if there are none, or if they are not known yet.
    [[nodiscard]] std::vector<host_report> hosts();
    /// Returns the run's parameters as the supervisor has reported them; nullopt if it has not replied yet.
    /// They are requested every second until the reply arrives.
    [[nodiscard]] std::optional<run::parameter_state> parameters();
    /// Called if the run has a new control block: discards the earlier reply and requests the parameters
    /// again.
    void ask_parameters_again();
    /// Blocks until all commands that were sent have been answered, for at most `seconds` seconds.
    void flush(f64 seconds);
    /// Sends one command in the caller's thread and blocks until it is answered, for at most 5 s. Never
    /// throws.
    [[nodiscard]] static reply ask(const std::string& path, const std::string& run_id, const command& c);

private:
    struct target {
        std::string path, run_id;
        bool operator==(const target&) const = default;
    };
    struct queued_command {
        target to;  ///< the target at the time when the user gave the command, so that the command is not
                    ///< sent to a run that the window shows later
        command what;
    };
    /// What the thread does next. After each task, the thread calls next_task() again.
    enum class task : u8 { none, queued_command, parameters, ps };
    [[nodiscard]] task next_task() const;  ///< requires the mutex
    void loop();
    void forget_parameters();  ///< requires the mutex
    void ask_parameters(const target& to, u64 question);
    void ask_ps(const target& to, const gpu_memory& gpus);

    const client_access access_;
    std::mutex mutex_;
    std::condition_variable wake_, idle_;
    target aim_;
    std::deque<queued_command> waiting_;
    std::vector<reply> replies_;
    std::vector<seat_report> report_;
    run_report run_state_;
    std::optional<last_report> last_known_;
    std::vector<host_report> hosts_;
    std::map<std::string, std::string> ring_names_;
    std::unique_ptr<run::parameter_state> parameters_;
    u64 question_ = 0;              ///< number of the latest request; replies to older requests are discarded
    std::string reported_problem_;  ///< the last reported problem with the parameters of this target
    u64 next_parameters_ns_ = 0, next_ps_ns_ = 0;
    bool stop_ = false, busy_ = false;
    std::thread thread_;
};

}  // namespace carousel::viewer
