#pragma once
// A stage's heartbeat: a thread that stamps the time into its entry, accounts CPU time and watches the line
// to the supervisor (supervisor_link.hpp). A late heartbeat makes a stage suspect (stopped, or starved),
// never dead. When no second supervisor takes the run over within `supervisor_grace_s` (pipeline file;
// CAROUSEL_SUPERVISOR_GRACE_S in a stage's environment goes before it) the stage ends with
// exit_code::supervisor_gone, the last one of the run behind a clean-up (orphan_cleanup.hpp).

#include <atomic>
#include <thread>

#include "stages/runner/runtime.hpp"

namespace carousel::stages {

class heartbeat {
public:
    explicit heartbeat(runtime& r);
    ~heartbeat();
    heartbeat(const heartbeat&) = delete;
    heartbeat& operator=(const heartbeat&) = delete;

    /// Before an orderly exit: a run without a supervisor is kept for its next one, which makes the report.
    /// Returns once there is one; bounded by the grace time, which ends the process.
    void wait_for_supervisor();

private:
    void beat();
    void exit_after_grace();
    runtime* runtime_;
    u64 grace_ns_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace carousel::stages
