#include "runs/run_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/log.hpp"
#include "ring/words.hpp"
#include "run/directory.hpp"
#include "run/liveness.hpp"
#include "shm/process_id.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
constexpr u64 orphan_patience_ns = 3 * ns_per_s, passing_patience_ns = 2 * ns_per_s;

[[noreturn]] void refuse_second(const std::string& name, const std::string& folder) {
    const auto record = run::read_record(folder);
    throw config_error(fmt::format(
        "a pipeline \"{}\" is already running{}: end it (`carousel down -p {}`), or choose another --name",
        name, record ? fmt::format(" (pid {})", record->supervisor.pid) : "", name));
}

/// Kills the processes that are listed in a dead supervisor's control block, and waits for their end. A
/// port's program, whose entry has no start time, belongs to the user: it finds that its run is over.
void end_orphans(const std::string& run_id) {
    std::vector<shm::unique_fd> orphans;
    try {
        const shm::segment s = shm::segment::observe(run_id);
        for (const shm::incarnation& e : s.block().entry) {
            if (ring::entry_word::of(ring::load(e.identity)).state == ring::entry_state::fenced ||
                ring::load(e.start_time) == 0)
                continue;
            if (shm::unique_fd fd = open_claimer(e, run_id); fd && shm::signal_pidfd(fd.get(), SIGKILL) == 0)
                orphans.push_back(std::move(fd));
        }
    } catch (const error&) {  // the block has another version, or was never finished, so no process had
                              // attached to it
    }
    const u64 until = now_ns() + orphan_patience_ns;
    for (const shm::unique_fd& fd : orphans) (void)events_of(fd.get(), POLLIN, until);
    if (!orphans.empty()) log::info("ended {} stages left by a dead supervisor", orphans.size());
}

/// Refuses to start because stages of that name are alive in another pid or time namespace, or on another
/// host. These stages can exit only while the folder's lock is free.
[[noreturn]] void refuse_elsewhere(const std::string& name, const run::record& r) {
    throw config_error(fmt::format(
        "the supervisor of a pipeline \"{0}\" (pid {1} there) has ended, and processes of that run continue "
        "in another pid or time namespace (a container): this process can neither adopt nor end them. Start "
        "the pipeline there to take it over, wait until they end (--wait S), or choose another --name",
        name, r.supervisor.pid));
}

/// Returns true if the lock's holder is not a living supervisor. The holder is then a stage that cleans up
/// after a dead supervisor, a process that checks the lock, or a start that has not written its record yet.
/// Each of these processes releases the lock soon.
bool is_passing(const std::string& folder) {
    const auto record = run::read_record(folder);
    return !record || !is_alive(*record);
}

/// Returns the descriptor as the lock of the folder; empty if the descriptor refers to another file, or does
/// not hold the lock.
shm::unique_fd kept_lock(const std::string& folder, int descriptor) {
    struct stat held {
    }, there{};
    if (descriptor <= STDERR_FILENO || ::fstat(descriptor, &held) != 0 ||
        ::stat(shm::folder_lock(folder).c_str(), &there) != 0 || held.st_ino != there.st_ino ||
        held.st_dev != there.st_dev || ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 ||
        ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
        return {};
    return shm::unique_fd(descriptor);
}

/// Returns the run in the folder if this process can't take the run over because the run is in another
/// namespace; the caller holds the folder's lock.
std::optional<run::record> runs_elsewhere(const std::string& folder) {
    auto record = run::read_record(folder);
    if (record && (run::is_of_here(*record) || run::liveness_of(*record, true) == run::liveness::over))
        record.reset();
    return record;
}

u32 count_living(const std::string& run_id, bool standbys) try {
    const shm::segment s = shm::segment::observe(run_id);
    u32 count = 0;
    for (const shm::incarnation& e : s.block().entry) {
        const ring::entry_state state = ring::entry_word::of(ring::load(e.identity)).state;
        const bool counts = state == ring::entry_state::starting || state == ring::entry_state::live ||
                            (standbys && state == ring::entry_state::standby);
        count += counts && open_claimer(e, run_id) ? 1 : 0;
    }
    return count;
} catch (const error&) {
    return 0;
}

}  // namespace

run_lock::run_lock(const std::string& name, f64 wait_s, int kept) {
    folder_ = run::make_run_folder(name);
    lock_ = kept_lock(folder_, kept);
    kept_ = static_cast<bool>(lock_);
    if (kept_) return;
    const u64 began = now_ns(), until = began + static_cast<u64>(std::max(0.0, wait_s) * 1e9);
    for (;; ::usleep(20'000)) {
        folder_ = run::make_run_folder(name);
        lock_ = shm::lead_folder(folder_);
        const int why = errno;
        if (lock_) {
            const std::optional<run::record> elsewhere = runs_elsewhere(folder_);
            if (!elsewhere) return;
            lock_.reset();
            if (now_ns() >= until) refuse_elsewhere(name, *elsewhere);
            continue;
        }
        if (why == ENOENT || why == ESTALE) continue;
        if (why != EWOULDBLOCK)
            throw shm_error(fmt::format("opening {}: {}; check free space and write permission of the folder",
                                        shm::folder_lock(folder_), errno_text(why)));
        if (now_ns() >= until && (now_ns() - began > passing_patience_ns || !is_passing(folder_)))
            refuse_second(name, folder_);
    }
}

// Called when the run is over. Pictures in the folder are kept because they belong to the user, dead letters
// are kept until the next run of this name, and logs are kept if that was requested.
run_lock::~run_lock() {
    if (leave_) return;
    std::error_code ignored;
    for (fs::directory_iterator at(folder_, ignored), end; !ignored && at != end; at.increment(ignored)) {
        std::error_code failed;
        const std::string name = at->path().filename().string();
        if (name != "pictures" && name != "dead-letters" && name != "lock" && !(keep_logs_ && name == "logs"))
            fs::remove_all(at->path(), failed);
    }
    fs::remove(folder_ + "/lock", ignored);
    fs::remove(folder_, ignored);
}

int run_lock::keep_over_exec(bool keep) const noexcept {
    ::fcntl(lock_.get(), F_SETFD, keep ? 0 : FD_CLOEXEC);
    return lock_.get();
}

// If the lock is held and the record is from another namespace, no process of that run is alive (see the
// constructor), and the pids in its block are not valid here.
void run_lock::end_leftovers(bool lost) const {
    const auto record = run::read_record(folder_);
    if (!record || (run::is_alive(*record, true) && !kept_)) return;
    if (run::is_of_here(*record)) {
        end_orphans(record->run_id);
        if (const auto dashboard = run::read_dashboard_record(folder_))
            run::end_dashboard(dashboard->process);
    }
    (void)shm::end_marked_processes(shm::mps_mark(shm::mps_folder(folder_)), orphan_patience_ns);
    if (lost) (void)run::keep_lost_run(folder_);
    shm::segment::remove(record->run_id);
    shm::trace_segment::remove(record->run_id);
}

void run_lock::clear_leftovers() const {
    end_leftovers(true);
    std::error_code failed;
    for (fs::directory_iterator at(folder_, failed), end; !failed && at != end; at.increment(failed)) {
        std::error_code ignored;
        if (at->path().filename() != "lock" && at->path().filename() != "pictures")
            fs::remove_all(at->path(), ignored);
    }
}

shm::unique_fd open_claimer(const shm::incarnation& entry, const std::string& run_id) {
    const ring::entry_word w = ring::entry_word::of(ring::load(entry.identity));
    return shm::open_member({static_cast<i32>(w.pid), ring::load(entry.start_time)}, run_id);
}

u32 living_stages(const std::string& run_id) { return count_living(run_id, false); }
u32 living_processes(const std::string& run_id) { return count_living(run_id, true); }

}  // namespace carousel::supervisor
