#pragma once
// The run under test: a `carousel run` in its own process, with its output in a file.

#include <optional>
#include <string>
#include <vector>

#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "core/json.hpp"
#include "core/types.hpp"
#include "os/spawn.hpp"

namespace carousel::supervisor::chaos {

class subject {
public:
    /// `words`: the arguments after `carousel`. `name`: the name of the pipeline. Does not start the process.
    subject(std::vector<std::string> words, std::string name, std::string log_file);
    ~subject();  ///< if the run is still alive, ends it by SIGINT, and after a timeout by SIGKILL
    subject(const subject&) = delete;
    subject& operator=(const subject&) = delete;

    void start();                     ///< Throws config_error.
    void kill_supervisor() noexcept;  ///< SIGKILL, and reaped
    [[nodiscard]] bool is_alive() const noexcept;
    void signal(int number) const noexcept;
    /// Waits for the end of the run. Returns the run's exit code, or 128 + N for signal N; nullopt: the run
    /// has not ended.
    [[nodiscard]] std::optional<int> wait(f64 timeout_s);
    /// The reply to "ps"; empty if the supervisor does not reply (at the moment).
    [[nodiscard]] run::ps_answer ps() const;
    /// Returns the reply to a request; if the supervisor does not reply, returns a refusal.
    [[nodiscard]] run::verdict ask(const run::request& request) const;
    [[nodiscard]] i32 pid() const noexcept { return process_.pid; }
    /// The last lines of the run's output.
    [[nodiscard]] std::string last_lines() const;
    /// Finds the newest output line that contains `begin`, and returns its text from `begin` on; "": there is
    /// no such line.
    [[nodiscard]] std::string last_line(const std::string& begin) const;

private:
    /// Returns {} if there is no reply.
    [[nodiscard]] nlohmann::json reply_to(const run::request& request) const;

    std::vector<std::string> words_;
    std::string name_, log_file_;
    spawned process_;
    std::optional<int> code_;
};

/// One seat as listed by "ps".
struct victim {
    std::string label;
    i32 pid = 0;
    u32 stage = 0;
    bool running = false, on_gpu = false;
    bool remote = false;  ///< the process is on another host: the pid is valid only on that host, and the
                          ///< supervisor sends the signal
    // as reported by the seat's process
    bool guarded = false;  ///< the seat has inputs, and its process can't write to them
    bool gapped =
        false;  ///< the seat has an output, and its process can't write beyond a slot of that output
    bool closed = false;  ///< the seat's process can write only to parts of the control block
};
/// Returns all seats in the order of the file; the seats of other hosts come last. The number of seats is
/// constant, unless a supervisor has just taken the run over.
[[nodiscard]] std::vector<victim> seats_of(const run::ps_answer& ps);
/// Returns true if every process and every host in "ps" is running, and there is at least one process.
[[nodiscard]] bool all_run(const run::ps_answer& ps);

}  // namespace carousel::supervisor::chaos
