#include "stages/runner/supervisor_link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "control/stage_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "run/directory.hpp"
#include "run/liveness.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"
#include "stages/runner/attach.hpp"
#include "stages/runner/exit_note.hpp"

namespace carousel::stages {
namespace {

constexpr u64 silence_ns = 2 * ns_per_s;  // needed because a pipe into an external program (`stage | tee`)
                                          // does not break when the supervisor ends
constexpr u64 longest_watch_ns = 200 * ns_per_ms;  // longest time between two calls of watch() in a stage
                                                   // that is not stopped
// Short, because a supervisor may end soon after it has begun to listen: one that this stage never meets does
// not extend the time that the stage waits for a supervisor.
constexpr int return_every_ms = 5;
// short, so that a stopped listener does not stop the heartbeat
constexpr u64 connect_patience_ns = 50 * ns_per_ms;

/// True if `fd` is a pipe and no process has its read end open any more. Terminals and files are never
/// replaced.
bool is_broken_pipe(int fd) {
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISFIFO(info.st_mode)) return false;
    return (events_of(fd, POLLOUT) & POLLERR) != 0;
}

namespace fs = std::filesystem;
constexpr u64 daemon_patience_ns = 2 * ns_per_s, kill_patience_ns = ns_per_s;

/// True if another stage process still exists and has not decided to leave. This is determined by the entry
/// of that process, or, if its pid is not valid here (another pid or time namespace), by its lock. A process
/// that is DOOMED and still exists, because the supervisor died while it was retiring that process, is killed
/// here, because no list contains that process any more after the control block is removed. The caller must
/// have released the locks of this process.
bool others_live(const shm::control_block& c, u32 own_entry, const std::string& runtime_directory,
                 const std::string& run_id) {
    bool any = false;
    for (u32 k = 0; k < shm::max_incarnations; ++k) {
        const ring::entry_word w = ring::entry_word::of(ring::load(c.entry[k].identity));
        if (k == own_entry || w.pid == 0 || w.state == ring::entry_state::unused ||
            w.state == ring::entry_state::fenced)
            continue;
        const shm::unique_fd fd =
            shm::open_member({static_cast<i32>(w.pid), ring::load(c.entry[k].start_time)}, run_id);
        if (!fd) continue;
        if (w.state != ring::entry_state::doomed)
            any = true;
        else if (shm::signal_pidfd(fd.get(), SIGKILL) == 0)  // the end of that process also releases its
                                                             // locks
            (void)events_of(fd.get(), POLLIN, now_ns() + kill_patience_ns);
    }
    return any || run::has_members(runtime_directory) || shm::segment::is_held(run_id);
}

bool is_of_run(const std::string& folder, const std::string& run_id) {
    std::string found;
    return read_member(read_json_file(folder + "/run.json"), "run_id", found) && found == run_id;
}

void remove_shared_memory(const std::string& run_id) {
    shm::trace_segment::remove(run_id);
    shm::segment::remove(run_id);
}

/// Pictures and dead letters are kept, because they belong to the user.
void empty_folder(const std::string& folder) {
    std::error_code ignored;
    for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
        std::error_code failed;
        const std::string name = at->path().filename().string();
        if (name != "pictures" && name != "dead-letters" && name != "lock")
            fs::remove_all(at->path(), failed);
    }
    // Done last: a process that waits for the lock then finds that this name no longer refers to the locked
    // file, and retries.
    fs::remove(folder + "/lock", ignored);
    fs::remove(folder, ignored);
}

}  // namespace

supervisor_link::supervisor_link(attachment& a)
    : a_(&a), socket_(std::move(a.socket)), running_(longest_watch_ns), epoch_(a.incarnation.epoch) {}

u64 supervisor_link::unsupervised_ns() const noexcept {
    const u64 since = unsupervised_since_ns_.load(std::memory_order_acquire), now = now_ns();
    return since == 0 || now < since ? 0 : now - since;
}

bool supervisor_link::there() {
    const std::lock_guard lock(mutex_);
    if (!socket_ || awaiting_welcome_) return false;
    return (events_of(socket_.get(), POLLIN | POLLRDHUP) & (POLLHUP | POLLRDHUP | POLLERR)) == 0;
}

void supervisor_link::send_ready() {
    const std::lock_guard lock(mutex_);
    ready_ = true;
    if (socket_) shm::send_message(socket_.get(), write_message(run::ready_message{}).dump());
}

void supervisor_link::watch(int ms) {
    poll(ms);
    // The gap is read after the wait, during which this process may have been stopped, and before the caller
    // compares the time.
    const u64 now = now_ns(), gap = running_.consume_gap(now);
    if (const u64 since = unsupervised_since_ns_.load(std::memory_order_relaxed); gap != 0 && since != 0)
        unsupervised_since_ns_.store(later_by_gap(since, gap, now), std::memory_order_release);
}

void supervisor_link::poll(int ms) {
    if (!socket_) {  // read without the lock, because only this thread changes it
        std::this_thread::sleep_for(std::chrono::milliseconds(std::min(ms, return_every_ms)));
        write_alone();
        log_supervisor_gone(false);
        try_return();
        return;
    }
    if (events_of(socket_.get(), POLLIN | POLLRDHUP, now_ns() + static_cast<u64>(ms) * ns_per_ms) == 0)
        return;
    shm::message m;
    switch (shm::receive_message(socket_.get(), m)) {
        case shm::receive_status::ok:
            on_message(m);
            break;
        case shm::receive_status::would_block:
            break;
        default:
            lost();
    }
}

void supervisor_link::lost() {
    // A process that starts over gives up its entry, so no other supervisor could use it.
    if (is_to_start_over()) die(exit_code::supervisor_gone);
    {
        const std::lock_guard lock(mutex_);
        socket_.reset();
        awaiting_welcome_ = false;
    }
    unsupervised_since_ns_.store(now_ns(), std::memory_order_release);
    gone_logged_ = false;
    write_alone();
    log_supervisor_gone(false);
}

// A dying supervisor closes this socket before its log pipes. If a stage writes to a log pipe between these
// two events, no process reads that output.
void supervisor_link::log_supervisor_gone(bool now) {
    if (gone_logged_) return;
    struct stat info {};
    const bool pipe_open =
        ::fstat(STDERR_FILENO, &info) == 0 && S_ISFIFO(info.st_mode) && !is_broken_pipe(STDERR_FILENO);
    if (!now && pipe_open && unsupervised_ns() < silence_ns) return;
    gone_logged_ = true;
    log::warning(
        "the supervisor has ended: this stage continues, and exits in {} s unless another supervisor takes "
        "over",
        a_->supervisor_grace_s);
}

// Polled repeatedly, because a dying supervisor's files are closed one after another, and this stage's
// socket may be closed before its log pipe.
bool supervisor_link::find_broken() {
    bool more = false;
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
        if (std::find(broken_.begin(), broken_.end(), fd) != broken_.end() || !is_broken_pipe(fd)) continue;
        broken_.push_back(fd);
        more = true;
    }
    return more;
}

void supervisor_link::write_alone() {
    if (!find_broken()) return;
    const std::string path = fmt::format("{}/logs/{}.{}.{}.alone", a_->runtime_directory, a_->stage,
                                         a_->incarnation.seat, ::getpid());
    const shm::unique_fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (file)
        write_to(file.get());  // if the file can't be used, the lines are lost: they would go into a pipe
                               // whose reader has ended
}

void supervisor_link::write_to(int fd) {
    for (const int broken : broken_) ::dup2(fd, broken);
}

void supervisor_link::try_return() {
    shm::unique_fd s = shm::connect_to(run::control_socket(a_->runtime_directory), connect_patience_ns);
    if (!s) return;
    session::move_above_driver(s);
    const bool was_ready = [this] {
        const std::lock_guard lock(mutex_);
        return ready_;
    }();
    const run::return_message hello{a_->run_id,
                                    a_->stage,
                                    {a_->incarnation.seat, a_->incarnation.entry, epoch_.load()},
                                    was_ready,
                                    parse_json(a_->kept_json, json_channel::message),
                                    shm::this_process().start_time};
    std::vector<int> fds;
    for (const shm::unique_fd& fd : a_->fds) fds.push_back(fd.get());
    if (!shm::send_message(s.get(), write_message(hello).dump(), fds)) return;
    // While the supervisor's socket is open, this stage has a supervisor, even if that supervisor is stopped.
    unsupervised_since_ns_.store(0, std::memory_order_release);
    const std::lock_guard lock(mutex_);
    socket_ = std::move(s);
    awaiting_welcome_ = true;
    if (ready_ && !was_ready)  // this stage became ready in the meantime
        shm::send_message(socket_.get(), write_message(run::ready_message{}).dump());
}

void supervisor_link::on_message(const shm::message& m) {
    if (run::is_start_over(m.text)) return start_over_.store(true, std::memory_order_release);
    const run::welcome_answer answer = run::read_welcome(m.text);
    if (answer.refused) {
        log::info("the supervisor that took over the run has no seat for this stage: {}", *answer.refused);
        die(exit_code::revoked);
    }
    if (!answer.welcome) return;
    (void)find_broken();
    const int at = answer.welcome->log;
    if (at >= 0 && static_cast<std::size_t>(at) < m.fds.size())
        write_to(m.fds[static_cast<std::size_t>(at)].get());
    broken_.clear();
    {
        const std::lock_guard lock(mutex_);
        awaiting_welcome_ = false;
        shm::send_message(socket_.get(), write_message(run::back_message{}).dump());
    }
    log_supervisor_gone(true);
    log::info("another supervisor has taken over the run");
}

bool leave_run(shm::control_block& c, u32 own_entry, const std::string& runtime_directory,
               const std::string& run_id) noexcept try {
    const shm::unique_fd lock = shm::lead_folder(runtime_directory, shm::absent_lock::keep);
    if (!lock && (errno == EWOULDBLOCK || errno == ESTALE)) return false;
    if (!lock) {  // the folder has been removed: only shared memory of this run can remain
        release_run();
        if (!others_live(c, own_entry, runtime_directory, run_id)) remove_shared_memory(run_id);
        return true;
    }
    // Done under the lock, so that each process that leaves sees which processes have left before it.
    ring::doom(c, own_entry);
    release_run();
    if (others_live(c, own_entry, runtime_directory, run_id)) return true;
    if (is_of_run(runtime_directory, run_id)) {
        // Ends the supervisor's MPS daemon if the stages were its clients; this process no longer needs a
        // GPU.
        (void)shm::end_marked_processes(shm::mps_mark(shm::mps_folder(runtime_directory)),
                                        daemon_patience_ns);
        (void)run::keep_lost_run(runtime_directory, &c);
        empty_folder(runtime_directory);
    }
    remove_shared_memory(run_id);
    return true;
} catch (const std::exception&) {
    return true;  // out of memory: `carousel clean` removes the remaining files
}

}  // namespace carousel::stages
