#pragma once
// A `carousel` command that `carousel top` runs for the user, as a process of its own: the screen stays
// responsive while the supervisor or a check of the stage's program takes its time, and an action has exactly
// the checks, messages and errors that it has on the command line. If the object is destroyed, the command is
// ended.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "os/log_pipe.hpp"
#include "os/spawn.hpp"

namespace carousel::supervisor {

class command_run {
public:
    /// Starts `program` with these words. Errors of the start are reported as a failed command.
    command_run(const std::string& program, const std::vector<std::string>& words) noexcept;
    ~command_run();
    command_run(const command_run&) = delete;
    command_run& operator=(const command_run&) = delete;

    /// Takes what the command has printed since the last call. Returns true if there are new lines, or if the
    /// command has ended. Does not block.
    bool poll();
    /// The newest lines, oldest first.
    [[nodiscard]] const std::deque<std::string>& lines() const noexcept { return lines_; }
    /// True if the command has ended with exit code 0; nullopt: it has not ended.
    [[nodiscard]] std::optional<bool> succeeded() const noexcept { return succeeded_; }
    [[nodiscard]] u64 started_ns() const noexcept { return started_ns_; }

private:
    void add(std::string line);

    spawned child_;
    shm::unique_fd output_;
    line_splitter splitter_;
    std::deque<std::string> lines_;
    std::optional<bool> succeeded_;
    u64 started_ns_ = 0;
};

}  // namespace carousel::supervisor
