#pragma once
// A stage's line to its supervisor: the liveness socket, and what happens when the supervisor is gone. The
// stage goes on (frames need no supervisor), looks at DIR/control.sock for a second one, and presents itself
// there:
//
//   stage      -> return (run/stage_message.hpp) with the fds of all memory of the run; a standby, which
//   waits
//                 like the others, bears epoch 0 until it is promoted
//   supervisor -> welcome with a new pipe for stdout and stderr, or a refusal
//   stage      -> back, when it writes there: what it wrote in the meantime is whole
//
// Who may call: watch() one thread (the heartbeat); the rest any thread. Output in the meantime: a pipe whose
// reader is dead is replaced by DIR/logs/STAGE.SEAT.PID.alone, which the second supervisor reads and removes.
// What a crash leaves: the fds die with the process; the file lies in the runtime directory, which the
// process that ends the run removes.

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "stages/runner/attach.hpp"

namespace carousel::stages {

class supervisor_link {
public:
    /// Takes a's socket over; `a` must outlive this.
    explicit supervisor_link(attachment& a);
    /// Waits up to `ms` for news and acts on them. Ends the process when a supervisor refuses it.
    void watch(int ms);
    /// How long there has been no supervisor, 0 while there is one.
    [[nodiscard]] u64 unsupervised_ns() const noexcept;
    /// Asks the socket itself, not what watch() has last seen.
    [[nodiscard]] bool there();
    /// Tells it that this stage is LIVE, or as a standby could be. When nobody hears it, the next supervisor
    /// is told.
    void send_ready();
    /// A standby has taken its seat.
    void set_epoch(u32 epoch) noexcept { epoch_.store(epoch, std::memory_order_relaxed); }

private:
    void lost();
    void log_supervisor_gone(bool now);
    void try_return();
    void on_message(const shm::message& m);
    bool find_broken();
    void write_alone();
    void write_to(int fd);

    attachment* a_;
    std::mutex mutex_;  ///< this process's own; guards socket_
    shm::unique_fd socket_;
    std::atomic<u64> unsupervised_since_ns_{0};
    std::atomic<u32> epoch_;
    bool awaiting_welcome_ = false;
    bool ready_ = false;       ///< guarded by the mutex
    bool gone_logged_ = true;  ///< of watch()'s thread alone
    std::vector<int> broken_;  ///< of 1 and 2: those whose reader is dead
};

}  // namespace carousel::stages
