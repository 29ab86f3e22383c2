#pragma once
// A stage's pulse: a thread that stamps the heartbeat, accounts CPU time and watches the supervisor's end of the socket.
// A late heartbeat makes a stage suspect (stopped, or starved), never dead. When the supervisor is gone the stage goes on for
// `grace_s` (frames flow without it), then ends with exit_code::supervisor_gone.

#include <atomic>
#include <thread>

#include "stages/runtime.hpp"

namespace carousel::stages {

class pulse {
public:
    explicit pulse(runtime& r);
    ~pulse();
    pulse(const pulse&) = delete;
    pulse& operator=(const pulse&) = delete;

private:
    void beat();
    runtime* runtime_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace carousel::stages
