#pragma once
// Reports the run to the service manager that started the supervisor (os/notify_socket.hpp):
//
//   READY=1      every stage is ready: a frame can be made
//   MAINPID=     sent with READY=1 by a supervisor that has adopted the run
//   STATUS=      as `carousel ps`: "running, 60.1 frames/s"; at the end the run's last line
//   WATCHDOG=1   from the engine's tick: a supervisor that hangs sends none, and the manager replaces it
//   RELOADING=1  with MONOTONIC_USEC=: a changed plan is being taken over; READY=1 follows
//   STOPPING=1   the run is to end, and no other program continues it
//
// While the run starts or ends, EXTEND_TIMEOUT_USEC= requests more time, because a drain may continue for as
// long as frames advance. The engine itself has a timeout for each step.

#include <string>

#include "os/notify_socket.hpp"
#include "supervisor/engine/run_extension.hpp"

namespace carousel::supervisor {

class service_extension final : public run_extension {
public:
    explicit service_extension(notify_socket manager) : manager_(std::move(manager)) {}

    void attach(run_access& run) override;
    void tick(u64 now) override;
    void leave() noexcept override;
    void report_outcome(int code, const nlohmann::json& report, const std::string& line) override;

private:
    void send_watchdog(u64 now);
    void send_state(const run_summary& now_is, u64 now);

    notify_socket manager_;
    run_access* run_ = nullptr;
    u64 watchdog_due_ns_ = 0, status_due_ns_ = 0;
    bool ready_ = false, stopping_ = false;  ///< true if READY=1 or STOPPING=1 has been sent, respectively
    bool reloading_ = false;                 ///< RELOADING=1 has been sent, and no READY=1 since
    std::string status_;                     ///< text of the last STATUS= that was sent
};

}  // namespace carousel::supervisor
