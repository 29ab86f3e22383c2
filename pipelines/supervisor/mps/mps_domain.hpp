#pragma once
// The MPS domain of a run, for the supervisor's main thread: no call blocks, except start() and the
// destructor. Blocking work runs on a dedicated thread, one task after the other; results return through the
// event loop.
//
// A generation is one daemon with its server, numbered from 1. If a client dies and was not ended by
// end_client(), the generation is over: the dead client's work may still run, and the server may refuse new
// clients (measured). renew() kills daemon and server. When the daemon and the server have ended, every
// client of that generation is fenced.
//
// A daemon and a server take longer to start than to end, so a spare pair is kept ready (make_spare()):
// renew() then uses the spare pair at once, while the old pair is ended. New clients need not wait until the
// old pair has ended, because buffers that the old clients may still write are in quarantine until these
// clients are fenced. The two daemons have separate folders, DIR/mps/0 and DIR/mps/1; the link
// DIR/mps/serving names the folder of the daemon that serves new clients.
//
// A crash of this process leaves the daemons running: a supervisor that adopts the run finds them (adopt()),
// a run of the same name ends them, and so does the last stage that exits
// (stages/runner/supervisor_link.hpp).

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
    ~mps_domain();  ///< ends the domain: sends `quit`, and SIGKILL after 1 s; takes at most 8 s
    mps_domain(const mps_domain&) = delete;
    mps_domain& operator=(const mps_domain&) = delete;

    /// Blocks until the first daemon listens. Throws device_error.
    void start();
    /// Takes over the daemon of a dead supervisor as generation 1. Also ends that supervisor's other daemon,
    /// if there is one: a spare, or a daemon that was being ended. Returns false if no daemon answers; call
    /// renew() then.
    [[nodiscard]] bool adopt();

    /// Ends a client. The client's words must be aborted first, and its process must be sent SIGCONT, because
    /// a stopped client cannot be ended. `then(why)` is always called from the event loop: `why` is empty if
    /// the client's work has certainly ended; otherwise `why` is the reason why this is not certain.
    void end_client(i32 pid, std::function<void(const std::string& why)> then);
    /// Starts a spare daemon and its server, unless a spare exists or a start was already tried in this
    /// generation. On failure the domain works without a spare.
    void make_spare();
    [[nodiscard]] bool has_spare() const noexcept { return spare_ == spare_state::ready; }

    struct renewal {
        /// `why` is empty if the next generation serves; otherwise it is the reason why it does not.
        std::function<void(const std::string& why)> up;
        std::function<void()> over;  ///< called after the attempt to end the old generation, whose result is
                                     ///< has_ended(); a further renewal may cancel this call
    };
    /// Ends the generation and starts the next one. Both callbacks are called from the event loop, in any
    /// order. Calls of end_client() that were not started are dropped, and their `then` is not called, so the
    /// caller must kill the clients of these calls.
    void renew(renewal then);
    /// Called from the event loop if the daemon dies unexpectedly. Set it before start() or adopt().
    void on_death(std::function<void()> on_exit) { on_exit_ = std::move(on_exit); }

    [[nodiscard]] bool is_up() const noexcept { return up_; }
    /// The generation that serves now or, if none serves now, the generation that served last.
    [[nodiscard]] u32 generation() const noexcept { return generation_; }
    /// True if no process of that generation is left, and no work of its clients runs.
    [[nodiscard]] bool has_ended(u32 generation) const noexcept { return generation <= ended_; }
    [[nodiscard]] i32 daemon_pid() const noexcept { return daemon_.pid; }
    [[nodiscard]] std::vector<std::string> client_environment() const {
        return serving().client_environment();
    }

private:
    enum class spare_state : u8 { none, making, ready };
    struct outcome {
        std::string why;
        /// no process of the earlier generations is left; the new generation may be in any state
        bool ended = false;
        shm::process_id daemon{};  ///< the new daemon
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
    u32 spare_of_ = 0;  ///< the generation that was serving when the spare was requested
    shm::process_id spare_daemon_;
    shm::unique_fd daemon_pidfd_, spare_pidfd_, done_event_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<task> todo_, done_;
    bool stop_ = false;
    std::thread thread_;  ///< must be the last member, because the thread uses the other members
};

}  // namespace carousel::supervisor
