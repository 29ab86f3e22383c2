#pragma once
// The MPS domain of a run, for the supervisor's main thread: no call blocks, except start() and the
// destructor. Blocking work runs on a dedicated thread, one task after the other; results return through the
// event loop.
//
// A generation is one daemon with its server, numbered from 1; a number is used once. If a client dies and
// was not ended by end_client(), the generation is over: the dead client's work may still run, and the server
// may refuse new clients (measured). renew() kills daemon and server. When the daemon and the server have
// ended, every client of that generation is fenced.
//
// A daemon and a server take longer to start than to end, so a spare pair is kept ready (make_spare()). It
// has the number that it will serve with, and standbys may be its clients. renew() uses the spare pair at
// once, while the old pair is ended. New clients need not wait until the old pair has ended, because buffers
// that the old clients may still write are in quarantine until these clients are fenced.
//
// Odd generations have the folder DIR/mps/0, even ones DIR/mps/1. The links DIR/mps/serving and DIR/mps/spare
// have the numbers of both as their targets. One rename of the second to the first makes the spare serve.
//
// A crash of this process leaves the daemons running: a supervisor that adopts the run finds them (adopt()),
// a run of the same name ends them, and so does the last stage that exits
// (stages/runner/supervisor_link.hpp).

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
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
    /// Takes over the daemons of a dead supervisor: the serving one, and a spare one that was ready. Returns
    /// false if the serving daemon does not answer; call renew() then. A spare one that does not answer is
    /// not ended before the next call of renew() or make_spare(), because it may have clients that hold
    /// seats.
    [[nodiscard]] bool adopt();
    /// To be called after adopt() for each process that was found: a number that a process has is not used
    /// again.
    void mark_used(u32 generation) noexcept { last_ = std::max(last_, generation); }
    /// To be called once after that: ends a daemon that neither serves nor is named as the spare one, unless
    /// processes were found that may be its clients. The words of these are revoked first, because the end of
    /// their server completes their events; a renewal follows, or the next spare replaces it.
    void end_nameless();

    /// Ends a client. The client's words must be aborted first, and its process must be sent SIGCONT, because
    /// a stopped client cannot be ended. `then(why)` is always called from the event loop: `why` is empty if
    /// the client's work has certainly ended; otherwise `why` is the reason why this is not certain.
    void end_client(i32 pid, std::function<void(const std::string& why)> then);
    /// Starts a spare daemon and its server, unless a spare exists. On failure the domain works without a
    /// spare. A spare that has died, or could not be started, is replaced after a delay.
    void make_spare();
    /// To be called if the spare server is found to be unusable: make_spare() replaces it.
    void drop_spare();
    /// Returns the reason why the last start of a spare has failed, once per reason; otherwise "".
    [[nodiscard]] std::string take_spare_failure() { return std::exchange(unreported_, std::string()); }
    [[nodiscard]] bool has_spare() const noexcept { return spare_generation() != 0; }
    /// The generation of the spare daemon; 0 if there is none, or if it or its server has died.
    [[nodiscard]] u32 spare_generation() const noexcept { return spare_is_alive() ? spare_generation_ : 0; }
    /// Reports the time since which the serving generation's server is dead; 0 while it is alive or unknown.
    [[nodiscard]] u64 server_dead_since_ns();

    struct renewal {
        /// `why` is empty if the next generation serves; otherwise it is the reason why it does not.
        std::function<void(const std::string& why)> up;
        std::function<void()> over;  ///< called after the attempt to end the old generation, whose result is
                                     ///< has_ended(); a further renewal may cancel this call
    };
    /// Ends the generation and starts the next one. `spare`: the spare generation serves next; it must be the
    /// result of spare_generation(), and may have died since. 0: both daemons are ended, and a new one is
    /// started. The words of all clients of the daemons that are ended must be aborted before. Both callbacks
    /// are called from the event loop, in any order. If `spare` is 0, calls of end_client() that were not
    /// started are dropped, and their `then` is not called, so the caller must kill the clients of these
    /// calls; otherwise they are done before the old daemon is ended.
    void renew(u32 spare, renewal then);
    /// Called from the event loop if the daemon dies unexpectedly. Set it before start() or adopt().
    void on_death(std::function<void()> on_exit) { on_exit_ = std::move(on_exit); }

    [[nodiscard]] bool is_up() const noexcept { return up_; }
    /// The generation that serves now or, if none serves now, the generation that served last.
    [[nodiscard]] u32 generation() const noexcept { return generation_; }
    /// True if no process of that generation is left, and no work of its clients runs.
    [[nodiscard]] bool has_ended(u32 generation) const noexcept { return generation <= ended_; }
    [[nodiscard]] i32 daemon_pid() const noexcept { return daemon_.pid; }
    /// The environment of a client of `generation`, which must be the serving or the spare one.
    [[nodiscard]] std::vector<std::string> client_environment(u32 generation) const {
        return part_of(generation).client_environment(generation);
    }

private:
    enum class spare_state : u8 { none, making, ready };
    struct outcome {
        std::string why;
        /// no process of the earlier generations is left; the new generation may be in any state
        bool ended = false;
        shm::process_id daemon{}, server{};  ///< the new daemon, and its server if that is known
    };
    struct task {
        std::function<outcome()> work;
        std::function<void(const outcome&)> then;
        outcome result;
    };
    [[nodiscard]] const mps_control& part_of(u32 generation) const noexcept {
        return parts_[(generation + 1) % 2];
    }
    [[nodiscard]] const mps_control& serving() const noexcept { return part_of(generation_); }
    [[nodiscard]] const mps_control& other() const noexcept { return part_of(generation_ + 1); }
    [[nodiscard]] bool spare_is_alive() const noexcept;
    void serve_from_spare(renewal then);
    void start_again(renewal then);
    void name(const char* role, u32 generation) const;
    [[nodiscard]] u32 named(const char* role) const;
    void find_server();
    void spare_failed(const std::string& why);
    void post(task t);
    void enqueue(task t);
    void run_tasks();
    void read_completions();
    void watch_daemon(const shm::process_id& daemon, shm::unique_fd pidfd);

    std::string folder_;
    std::array<mps_control, 2> parts_;
    event_loop* loop_;
    std::function<void()> on_exit_;
    bool up_ = false;
    u32 generation_ = 1, ended_ = 0, last_ = 1;  ///< last_: the highest number that was used
    shm::process_id daemon_;
    spare_state spare_ = spare_state::none;
    u32 spare_of_ = 0;  ///< the generation that was serving when the spare was requested
    u32 spare_generation_ = 0;
    u64 spare_due_ns_ = 0, spare_delay_ns_ = 0;
    std::string spare_why_, unreported_;  ///< of the last start of a spare; see take_spare_failure()
    shm::process_id spare_daemon_;
    shm::unique_fd daemon_pidfd_, server_pidfd_, spare_pidfd_, spare_server_pidfd_, done_event_;
    u32 server_of_ = 0;  ///< the generation whose server is known, or was queried
    u64 server_due_ns_ = 0;
    u64 server_dead_ns_ = 0;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<task> todo_, done_;
    bool stop_ = false;
    std::thread thread_;  ///< must be the last member, because the thread uses the other members
};

}  // namespace carousel::supervisor
