#pragma once
// Starts `carousel host` on another machine: by ssh, which returns when that supervisor listens there, or by
// Slurm's srun, which stays as long as the supervisor runs, since a job's step ends with it. The token goes
// over by the launcher's own connection (stdin), and is written there with mode 0600. Nothing here waits.

#include "os/spawn.hpp"
#include "supervisor/plan/hosts_plan.hpp"

namespace carousel::supervisor {

class launcher {
public:
    launcher(const host_spec& host, const hosts_plan& plan, std::string token);
    ~launcher();
    launcher(const launcher&) = delete;
    launcher& operator=(const launcher&) = delete;

    /// Starts one, unless one is on its way, has come to its end a moment ago, or a person is to start it.
    void start(u64 now);
    /// Takes its lines, and its end.
    void poll(u64 now);
    /// Its supervisor has answered: an end that comes now is no failure to start it.
    void reached() noexcept { reached_ = true; }
    /// Why it can't be started; "": it can, so far as is known.
    [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
    /// The failure, once.
    [[nodiscard]] std::string new_failure();
    /// What is started: for tests and messages.
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
