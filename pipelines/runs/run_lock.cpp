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

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/poll_until.hpp"
#include "ring/words.hpp"
#include "run/directory.hpp"
#include "run/lost_run.hpp"
#include "runs/clean.hpp"
#include "runs/orphaned_run.hpp"
#include "shm/marked_process.hpp"
#include "shm/segment.hpp"
#include "shm/trace_segment.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
constexpr u64 orphan_patience_ns = 3 * ns_per_s, passing_patience_ns = 2 * ns_per_s;

[[noreturn]] void refuse_second(const std::string& name, const std::string& folder) {
    const auto record = run::read_record(folder);
    throw config_error(fmt::format(
        "a pipeline \"{}\" is running already{}: end it (`carousel down -p {}`), or choose another --name",
        name, record ? fmt::format(" (pid {})", record->supervisor.pid) : "", name));
}

/// Kills the processes that a dead supervisor's control block names, and waits for their end.
void end_orphans(const std::string& run_id) {
    std::vector<shm::unique_fd> orphans;
    try {
        const shm::segment s = shm::segment::observe(run_id);
        for (const shm::incarnation& e : s.block().entry) {
            if (ring::entry_word::of(ring::load(e.identity)).state == ring::entry_state::fenced) continue;
            if (shm::unique_fd fd = open_claimer(e, run_id); fd && shm::signal_pidfd(fd.get(), SIGKILL) == 0)
                orphans.push_back(std::move(fd));
        }
    } catch (const error&) {  // of another version, or never finished: nobody had attached to it
    }
    const u64 until = now_ns() + orphan_patience_ns;
    for (const shm::unique_fd& fd : orphans) (void)events_of(fd.get(), POLLIN, until);
    if (!orphans.empty()) log::info("ended {} stages that a dead supervisor had left", orphans.size());
}

/// Somebody holds the lock who is no living supervisor: a stage that cleans up behind a dead one, or a start
/// that has not written its record yet. Neither takes long.
bool is_passing(const std::string& folder) {
    const auto record = run::read_record(folder);
    return !record || !is_alive(*record);
}

}  // namespace

run_lock::run_lock(const std::string& name, f64 wait_s) {
    const u64 began = now_ns(), until = began + static_cast<u64>(std::max(0.0, wait_s) * 1e9);
    for (;;) {
        folder_ = run::make_run_folder(name);
        const std::string path = folder_ + "/lock";
        lock_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        const int why = errno;
        if (lock_ && ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) {
            struct stat held {
            }, there{};
            // The run before us may have removed the folder between our open and our lock: then we hold a
            // file that nobody finds.
            if (::fstat(lock_.get(), &held) == 0 && ::stat(path.c_str(), &there) == 0 &&
                held.st_ino == there.st_ino)
                return;
            continue;
        }
        if (!lock_ && why != ENOENT)
            throw shm_error(fmt::format("opening {}: {}; is there room, and is the folder writable?", path,
                                        errno_text(why)));
        if (now_ns() >= until && lock_ && (now_ns() - began > passing_patience_ns || !is_passing(folder_)))
            refuse_second(name, folder_);
        ::usleep(20'000);
    }
}

// The run is over: pictures that lie in the folder are kept, for they are the user's, frames that were given
// up until the next run of this name, and logs that were asked for.
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

void run_lock::end_leftovers(bool lost) const {
    const auto record = run::read_record(folder_);
    if (!record || is_alive(*record)) return;
    end_orphans(record->run_id);
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
    for (const leftover& l : find_leftovers())
        // what resists is told by `carousel clean`
        if (l.kept.empty() && !l.on_purpose() && l.path != folder_) (void)remove_leftover(l);
}

}  // namespace carousel::supervisor
