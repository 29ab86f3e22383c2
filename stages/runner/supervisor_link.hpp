#pragma once
// A stage's connection to its supervisor: the liveness socket, and the behaviour after the supervisor has
// ended. The stage continues (frames need no supervisor), polls DIR/control.sock for a second supervisor and
// introduces itself there:
//   stage      -> return (control/stage_message.hpp) with the fds of all memory of the run; a standby, which
//                 waits too, sends epoch 0 until it is promoted
//   supervisor -> welcome with a new pipe for stdout and stderr, or a refusal
//   stage -> back, after it has begun to write to that pipe: the output of the time without a supervisor is
//   complete
// Threads: watch() is called on one thread (the heartbeat); the other functions on any thread. Output while
// there is no supervisor: a pipe whose reader is dead is replaced by DIR/logs/STAGE.SEAT.PID.alone, which the
// second supervisor reads and removes. What a crash leaves: the fds are closed with the process; the file
// remains in the runtime directory, which is removed by the process that ends the run.

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "core/running_time.hpp"
#include "ring/participants.hpp"
#include "stages/runner/attach.hpp"

namespace carousel::stages {

class supervisor_link {
public:
    /// Takes over a's socket; `a` must outlive this object.
    explicit supervisor_link(attachment& a);
    /// Waits up to `ms` milliseconds for a message and handles it; without a supervisor, waits a few
    /// milliseconds and polls for one. Ends the process if a supervisor refuses it.
    void watch(int ms);
    /// Returns the time in ns for which this process has run without a supervisor; 0 while there is one.
    [[nodiscard]] u64 unsupervised_ns() const noexcept;
    /// Updated by watch().
    [[nodiscard]] const running_time& running() const noexcept { return running_; }
    /// Returns whether there is a supervisor. Polls the socket instead of using the last result of watch().
    [[nodiscard]] bool there();
    /// Reports that this stage is LIVE, or that a standby is ready to become LIVE. If there is no supervisor,
    /// the next one receives the report.
    void send_ready();
    /// True if the supervisor has requested that this standby starts over (run::start_over_message). From
    /// then on the process ends if this supervisor ends.
    [[nodiscard]] bool is_to_start_over() const noexcept {
        return start_over_.load(std::memory_order_acquire);
    }
    /// Returns the connection, which this object no longer uses. watch() must not be called afterwards.
    [[nodiscard]] shm::unique_fd release() noexcept { return std::move(socket_); }
    /// Called when a standby has taken its seat.
    void set_epoch(u32 epoch) noexcept { epoch_.store(epoch, std::memory_order_relaxed); }

private:
    void poll(int ms);
    void lost();
    void log_supervisor_gone(bool now);
    void try_return();
    void on_message(const shm::message& m);
    bool find_broken();
    void write_alone();
    void write_to(int fd);

    attachment* a_;
    std::mutex mutex_;  ///< process-local; guards socket_
    shm::unique_fd socket_;
    /// The time at which this process lost its supervisor, plus the time for which this process has not run
    /// since it lost the supervisor. 0: there is a supervisor.
    std::atomic<u64> unsupervised_since_ns_{0};
    running_time running_;
    std::atomic<u32> epoch_;
    std::atomic<bool> start_over_{false};
    bool awaiting_welcome_ = false;
    bool ready_ = false;       ///< guarded by the mutex
    bool gone_logged_ = true;  ///< used only by watch()'s thread
    std::vector<int> broken_;  ///< the descriptors (1, 2 or both) of pipes whose reader has ended
};

// The exit of a stage if no other supervisor has taken the run over. The last stage that leaves a run saves
// the data known about the run (run/liveness.hpp) and removes everything else: shared memory and runtime
// directory (pictures and dead letters are kept). A stage determines under the run's file lock whether it is
// the last one. A supervisor holds this lock until it ends; so no stage cleans up while a supervisor runs,
// and no two stages clean up at the same time. A process that leaves releases its locks on the run
// (attach.hpp); while another process holds such a lock, nothing is removed.

/// Returns false if another process holds the lock; in this case the caller must call this function again
/// later. Returns true if this process may end; the caller must then end it immediately. What a crash leaves
/// at each step: an entry that is DOOMED too early (an adopter replaces the stage), or files that the next
/// run of that name or `carousel clean` removes.
[[nodiscard]] bool leave_run(shm::control_block& c, u32 own_entry, const std::string& runtime_directory,
                             const std::string& run_id) noexcept;

}  // namespace carousel::stages
