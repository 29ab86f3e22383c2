#pragma once
// Asks the supervisor to do something, twice a second how its stages are, and once which parameters the run
// has. A thread of its own talks to the socket, so that a supervisor that is slow, stopped or gone never
// holds the window up.

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/types.hpp"
#include "viewer/watch/gpu_memory.hpp"
#include "viewer/watch/host_report.hpp"

namespace carousel::run {
struct parameter_state;
}

namespace carousel::viewer {

struct command {
    std::string verb;         ///< kill, inject, stop, cont, restart, down, up, shutdown, set
    std::string stage;        ///< "fragment" or "fragment.1"; "b/sink" is one of another host
    int signal = 0;           ///< kill
    std::string fault = {};   ///< inject: shm/injected_fault.hpp
    std::string values = {};  ///< set: what changes, {name: value} as JSON text; "": none
    bool reset = false;       ///< set: all values as the run was started with
    u64 ticket = 0;           ///< the sender's own: comes back with the reply
};

struct reply {
    command asked;
    bool ok = false;
    std::string message;
    /// refused by a state that passes: so many changes wait for frames that there is no room for another
    bool later = false;
};

/// What `ps` says of one seat; the supervisor's own words, not derived from the control block.
struct seat_report {
    std::string stage, state, last_exit;
    u32 instance = 0, restarts = 0;
    f64 cpu_percent = 0;
    u64 memory_bytes = 0;  ///< resident
    u64 gpu_bytes = 0;     ///< on all GPUs; 0: none, or not known
};

/// What `ps` reports of the whole run.
struct run_report {
    std::string state;                   ///< "running", "paused", "waiting", ...; "": not known (yet)
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

    /// Whom to ask from now on, and which run that is: another run at that path refuses. "": nobody.
    void aim(const std::string& socket_path, const std::string& run_id);
    void send(command c);
    [[nodiscard]] std::vector<reply> take_replies();
    /// Empty: not known (yet).
    [[nodiscard]] std::vector<seat_report> report();
    [[nodiscard]] run_report run_state();
    /// Names that rings have beside their own: of a stage's first output STAGE.OUTPUT, to the ring's. As last
    /// told.
    [[nodiscard]] std::map<std::string, std::string> other_ring_names();
    /// The other hosts of the pipeline; empty: it has none, or nothing is known (yet).
    [[nodiscard]] std::vector<host_report> hosts();
    /// As the supervisor answered; nothing: not known (yet), it is asked each second.
    [[nodiscard]] std::optional<run::parameter_state> parameters();
    /// The run has a new control block: what was answered before it counts no more.
    void ask_parameters_again();
    /// Blocks until what was sent has been answered or `seconds` have passed.
    void flush(f64 seconds);
    /// Asks at once, in the caller's thread: blocks until the answer, at most 5 s. Never throws.
    [[nodiscard]] static reply ask(const std::string& path, const std::string& run_id, const command& c);

private:
    struct target {
        std::string path, run_id;
        bool operator==(const target&) const = default;
    };
    struct queued_command {
        target to;  ///< as it was when the command was given: none follows the window to another run
        command what;
    };
    enum class task : u8 {
        none,
        queued_command,
        parameters,
        ps
    };                                     ///< what the thread does next: one question, then it looks again
    [[nodiscard]] task next_task() const;  ///< the mutex is held
    void loop();
    void forget_parameters();  ///< the mutex is held
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
    u64 question_ = 0;              ///< an answer to an older one doesn't count
    std::string reported_problem_;  ///< of the parameters, to this target
    u64 next_parameters_ns_ = 0, next_ps_ns_ = 0;
    bool stop_ = false, busy_ = false;
    std::thread thread_;
};

}  // namespace carousel::viewer
