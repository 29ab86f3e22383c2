#include "stages/runner/orphan_cleanup.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/clock.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "run/liveness.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"
#include "stages/runner/membership.hpp"

namespace carousel::stages {
namespace {

namespace fs = std::filesystem;
constexpr u64 daemon_patience_ns = 2 * ns_per_s, kill_patience_ns = ns_per_s;

/// True if another stage remains that has not decided to leave. This is determined by its entry, or, if its
/// pid is not valid here (another pid or time namespace), by its lock. A DOOMED process that still exists
/// (the supervisor died during its retirement) is killed, because the control block is the last list that
/// contains it. This process has released its own locks.
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
        else if (shm::signal_pidfd(fd.get(), SIGKILL) == 0)  // this also releases the locks of that process
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

/// Pictures and dead letters belong to the user.
void empty_folder(const std::string& folder) {
    std::error_code ignored;
    for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
        std::error_code failed;
        const std::string name = at->path().filename().string();
        if (name != "pictures" && name != "dead-letters" && name != "lock")
            fs::remove_all(at->path(), failed);
    }
    // Done last, so that a process that waits for the lock then finds another file under this name, and
    // retries.
    fs::remove(folder + "/lock", ignored);
    fs::remove(folder, ignored);
}

}  // namespace

bool leave_run(shm::control_block& c, u32 own_entry, const std::string& runtime_directory,
               const std::string& run_id) noexcept try {
    const shm::unique_fd lock = shm::lead_folder(runtime_directory, shm::absent_lock::keep);
    if (!lock && (errno == EWOULDBLOCK || errno == ESTALE)) return false;
    if (!lock) {  // the folder has been removed: only shared memory of this run can remain
        release_run();
        if (!others_live(c, own_entry, runtime_directory, run_id)) remove_shared_memory(run_id);
        return true;
    }
    // Done under the lock, so that each of several leaving processes finds which others have left before it.
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
