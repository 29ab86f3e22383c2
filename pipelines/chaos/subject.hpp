#pragma once
// The run that is hit: a `carousel run` in a process of its own, its lines in a file.

#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/types.hpp"
#include "os/spawn.hpp"
#include "run/answer_message.hpp"
#include "run/ps_message.hpp"
#include "run/request_message.hpp"

namespace carousel::supervisor::chaos {

class subject {
public:
    /// `words`: behind `carousel`. `name`: of the pipeline. Starts nothing yet.
    subject(std::vector<std::string> words, std::string name, std::string log_file);
    ~subject();  ///< kills what still runs
    subject(const subject&) = delete;
    subject& operator=(const subject&) = delete;

    void start();                     ///< Throws config_error.
    void kill_supervisor() noexcept;  ///< SIGKILL, and reaped
    [[nodiscard]] bool is_alive() const noexcept;
    void signal(int number) const noexcept;
    /// Waits for its end: its exit code, 128 + N by a signal; none: it goes on.
    [[nodiscard]] std::optional<int> wait(f64 timeout_s);
    /// The answer to "ps"; an empty one when nobody answers (now).
    [[nodiscard]] run::ps_answer ps() const;
    /// What is said of a request; a refusal when nobody answers.
    [[nodiscard]] run::verdict ask(const run::request& request) const;
    [[nodiscard]] i32 pid() const noexcept { return process_.pid; }
    /// The last lines that it has said.
    [[nodiscard]] std::string last_lines() const;
    /// The newest of them that begins so; "": none does.
    [[nodiscard]] std::string last_line(const std::string& begin) const;

private:
    /// {} when nobody answers.
    [[nodiscard]] nlohmann::json reply_to(const run::request& request) const;

    std::vector<std::string> words_;
    std::string name_, log_file_;
    spawned process_;
    std::optional<int> code_;
};

/// A seat of a "ps".
struct victim {
    std::string label;
    i32 pid = 0;
    u32 stage = 0;
    bool running = false, on_gpu = false;
    bool remote = false;  ///< on another host: its pid is of there, and its supervisor hits it
    // as far as its process has said
    bool guarded = false;  ///< it has inputs, and can't write to them
    bool gapped = false;   ///< it has an output, and can't write beyond a slot of it
    bool closed = false;   ///< it can't write to all of the control block
};
/// All of them, in the order of the file, those of other hosts last: always as many, unless a supervisor has
/// just taken the run over.
[[nodiscard]] std::vector<victim> seats_of(const run::ps_answer& ps);
/// Every process and every host that "ps" names is running, and there is a process.
[[nodiscard]] bool all_run(const run::ps_answer& ps);

}  // namespace carousel::supervisor::chaos
