#pragma once
// A stage's heartbeat: a thread that stamps the time into the entry, accounts CPU time and watches the
// connection to the supervisor (supervisor_link.hpp). A late heartbeat makes a stage suspect (stopped or
// starved), never dead. If no second supervisor takes the run over within `supervisor_grace_s` (pipeline
// file; CAROUSEL_SUPERVISOR_GRACE_S in the stage's environment overrides it), the stage ends with
// exit_code::supervisor_gone; the last stage of the run cleans up first (supervisor_link.hpp).

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

    /// Called before an orderly exit: if the run has no supervisor, this process keeps the run for the next
    /// supervisor, which writes the report. Returns when there is a supervisor. If there is none within the
    /// grace time, the process ends.
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
