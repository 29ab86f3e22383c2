#pragma once
// Sends commands to the supervisor, polls the state of its stages twice per second, and requests the run's
// parameters once. Its own thread talks to the socket, so that a slow, stopped or dead supervisor never
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

#include "control/request_message.hpp"
#include "core/types.hpp"
#include "viewer/watch/gpu_memory.hpp"
#include "viewer/watch/host_report.hpp"

namespace carousel::run {
struct parameter_state;
}

namespace carousel::viewer {

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
    std::string limit_kind, limit_text;  ///< telemetry/bottleneck_json.hpp: "down", "fragment is down: ..."
};

class control_client {
public:
    control_client();
    ~control_client();
    control_client(const control_client&) = delete;
    control_client& operator=(const control_client&) = delete;

    /// Sets the supervisor to which requests are sent, and its run: a supervisor of another run at that path
    /// refuses them. "": none.
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
