#pragma once
// Starts `carousel host` on another machine, with ssh or with Slurm's srun. ssh returns when the supervisor
// listens on that machine. srun runs as long as the supervisor, because a job step ends with its srun. The
// token is sent over the launcher's own connection (stdin), and is written on that machine with mode 0600. No
// call blocks.

#include "os/spawn.hpp"
#include "supervisor/plan/hosts_plan.hpp"

namespace carousel::supervisor {

class launcher {
public:
    launcher(const host_spec& host, const hosts_plan& plan, std::string token);
    ~launcher();
    launcher(const launcher&) = delete;
    launcher& operator=(const launcher&) = delete;

    /// Starts a supervisor. Does nothing if a supervisor is being started, if the last attempt ended a moment
    /// ago, or if the user must start the supervisor.
    void start(u64 now);
    /// Reads the launcher's output, and detects its exit.
    void poll(u64 now);
    /// To be called when the supervisor has replied. After this call, an exit of the launcher does not count
    /// as a failure to start the supervisor.
    void reached() noexcept { reached_ = true; }
    /// Returns the reason why the supervisor cannot be started; "": no failure is known.
    [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
    /// The failure, returned once.
    [[nodiscard]] std::string new_failure();
    /// The command line, for tests and messages.
    [[nodiscard]] std::vector<std::string> command() const;

private:
    void read_lines();
    void end_child();
    void fail(const std::string& why);

    host_spec host_;
    std::string file_, token_, failure_, lines_;
    std::vector<std::string> words_;
    spawned child_;
    shm::unique_fd output_;
    bool runs_ = false, reached_ = false, reported_ = true;
    u64 retry_ns_ = 0;
};

}  // namespace carousel::supervisor
