#pragma once
// The MPS domain of a run, as the supervisor's one thread sees it: nothing here waits (start() and the
// destructor apart). What does, runs in a thread of the domain's own, one piece of work after the other;
// results come back through the event loop.
//
// A generation is one daemon with its server, from 1. When a client dies otherwise than by end_client(), the
// generation is over: nobody can say when the dead one's work ends, nor whether the server takes newcomers
// (measured: it may refuse them). renew() kills daemon and server. Their end is the fence of every client of
// that generation.
//
// A daemon and a server take longer to start than to end, so a spare one stands by (make_spare()): renew()
// then serves from it at once, and the old one is ended meanwhile. Newcomers need not wait for that end: what
// the old clients may still write is in quarantine until their fence. Two daemons have a folder each,
// DIR/mps/0 and DIR/mps/1; the link DIR/mps/serving names the one that serves.
//
// A crash of this process leaves the daemons behind; a supervisor that adopts the run finds them (adopt()), a
// run of the same name ends them, and so does the last stage that leaves (stages/runner/orphan_cleanup.hpp).

#include <array>
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
    mps_domain(const std::string& runtime_directory, event_loop& loop);
    ~mps_domain();  ///< ends it: a second for `quit`, then SIGKILL; at most 8 s
    mps_domain(const mps_domain&) = delete;
    mps_domain& operator=(const mps_domain&) = delete;

    /// Blocks until the first daemon listens. Throws device_error.
    void start();
    /// A daemon of a dead supervisor serves on, and becomes generation 1; a spare one, or one that was being
    /// ended, is ended. False: there is none that answers; renew() then.
    [[nodiscard]] bool adopt();

    /// Aborted words first. SIGCONT the process too: a stopped one can't be ended. `then(why)`: empty when
    /// nothing of the client runs any more; else why that can't be said. Called from the event loop, always.
    void end_client(i32 pid, std::function<void(const std::string& why)> then);
    /// Starts a daemon and its server beside those that serve, unless there are such or it has been tried in
    /// this generation. One that can't be had is done without.
    void make_spare();
    [[nodiscard]] bool has_spare() const noexcept { return spare_ == spare_state::ready; }

    struct renewal {
        std::function<void(const std::string& why)> up;  ///< empty: the next generation serves; else why not
        std::function<void()> over;                      ///< see has_ended(); a further renewal may drop it
    };
    /// Ends the generation and starts the next. Both are called from the event loop, in any order. What
    /// end_client() has not begun is dropped, its `then` is not called: the caller kills its clients itself.
    void renew(renewal then);
    /// Called from the event loop when the daemon has died unasked. Set before start() or adopt().
    void on_death(std::function<void()> on_exit) { on_exit_ = std::move(on_exit); }

    [[nodiscard]] bool is_up() const noexcept { return up_; }
    [[nodiscard]] u32 generation() const noexcept {
        return generation_;
    }  ///< that serves, or was the last to
    /// No process of that generation is left, and nothing of its clients runs.
    [[nodiscard]] bool has_ended(u32 generation) const noexcept { return generation <= ended_; }
    [[nodiscard]] i32 daemon_pid() const noexcept { return daemon_.pid; }
    [[nodiscard]] std::vector<std::string> client_environment() const {
        return serving().client_environment();
    }

private:
    enum class spare_state : u8 { none, making, ready };
    struct outcome {
        std::string why;
        bool ended = false;  ///< nothing is left of any generation before, whatever became of the new one
        shm::process_id daemon{};  ///< the new one
    };
    struct task {
        std::function<outcome()> work;
        std::function<void(const outcome&)> then;
        outcome result;
    };
    [[nodiscard]] const mps_control& serving() const noexcept { return parts_[serving_]; }
    [[nodiscard]] const mps_control& other() const noexcept { return parts_[1 - serving_]; }
    [[nodiscard]] bool spare_is_alive() const noexcept;
    void serve_from_spare(renewal then);
    void start_again(renewal then);
    void name_serving() const;
    void post(task t);
    void enqueue(task t);
    void run_tasks();
    void read_completions();
    void watch_daemon(const shm::process_id& daemon);

    std::string folder_;
    std::array<mps_control, 2> parts_;
    u32 serving_ = 0;
    event_loop* loop_;
    std::function<void()> on_exit_;
    bool up_ = false;
    u32 generation_ = 0, ended_ = 0;
    shm::process_id daemon_;
    spare_state spare_ = spare_state::none;
    u32 spare_of_ = 0;  ///< the generation in which it was asked for
    shm::process_id spare_daemon_;
    shm::unique_fd daemon_pidfd_, spare_pidfd_, done_event_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<task> todo_, done_;
    bool stop_ = false;
    std::thread thread_;  ///< last: it uses the rest
};

}  // namespace carousel::supervisor
