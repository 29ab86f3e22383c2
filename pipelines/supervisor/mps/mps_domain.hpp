#pragma once
// The MPS domain of a run, as the supervisor's one thread sees it: nothing here waits (start() and the
// destructor apart). What does, runs in a thread of the domain's own, one piece of work after the other;
// results come back through the event loop.
//
// A generation is one daemon with its server, from 1. When a client dies otherwise than by end_client(), the
// generation is over: nobody can say when the dead one's work ends, nor whether the server takes newcomers
// (measured: it may refuse them). renew() kills daemon and server. Their end is the fence of every client of
// that generation. Then a new daemon is started.
//
// A crash of this process leaves the daemon behind; a supervisor that adopts the run finds it (adopt()), a
// run of the same name ends it, and so does the last stage that leaves (stages/runner/orphan_cleanup.hpp).

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "os/event_loop.hpp"
#include "shm/fd_socket.hpp"
#include "supervisor/mps/mps_control.hpp"

namespace carousel::supervisor {

class mps_domain {
public:
    mps_domain(const std::string& run_directory, event_loop& loop);
    ~mps_domain();  ///< ends it: a second for `quit`, then SIGKILL; at most 5 s
    mps_domain(const mps_domain&) = delete;
    mps_domain& operator=(const mps_domain&) = delete;

    /// Blocks until the first daemon listens. Throws device_error.
    void start();
    /// A daemon of a dead supervisor serves on, and becomes generation 1. False: there is none that answers;
    /// renew() then.
    [[nodiscard]] bool adopt();

    /// Aborted words first. SIGCONT the process too: a stopped one can't be ended. `then(why)`: empty when
    /// nothing of the client runs any more; else why that can't be said. Called from the event loop, always.
    void end_client(i32 pid, std::function<void(const std::string& why)> then);
    /// Ends the generation and starts the next. `then(why)`: empty when it is up; else why not. What
    /// end_client() has not begun is dropped, its `then` is not called: the caller kills its clients itself.
    void renew(std::function<void(const std::string& why)> then);
    /// Called from the event loop when the daemon has died unasked. Set before start() or adopt().
    void on_death(std::function<void()> told) { told_ = std::move(told); }

    [[nodiscard]] bool is_up() const noexcept { return up_; }
    [[nodiscard]] u32 generation() const noexcept {
        return generation_;
    }  ///< that serves, or was the last to
    /// No process of that generation is left, and nothing of its clients runs.
    [[nodiscard]] bool has_ended(u32 generation) const noexcept { return generation <= ended_; }
    [[nodiscard]] i32 daemon_pid() const noexcept { return daemon_; }
    [[nodiscard]] std::vector<std::string> client_environment() const {
        return control_.client_environment();
    }

private:
    struct outcome {
        std::string why;
        bool ended = false;  ///< (renew) the old generation is gone, whatever became of the new one
    };
    struct task {
        std::function<outcome()> work;
        std::function<void(const outcome&)> then;
        outcome result;
    };
    void enqueue(task t);
    void work_off();
    void hear();
    void watch_daemon();

    mps_control control_;
    event_loop* loop_;
    std::function<void()> told_;
    bool up_ = false;
    u32 generation_ = 0, ended_ = 0;
    i32 daemon_ = 0;
    shm::unique_fd daemon_pidfd_, done_event_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<task> todo_, done_;
    bool stop_ = false;
    std::thread thread_;  ///< last: it uses the rest
};

}  // namespace carousel::supervisor
