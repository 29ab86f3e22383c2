#include "runs/clean.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <system_error>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "run/directory.hpp"
#include "run/liveness.hpp"
#include "runs/run_lock.hpp"
#include "runs/spaces.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_fd.hpp"
#include "shm/process_id.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view object_prefix = "carousel-";
constexpr time_t fresh_s = 10;  // a run may still be creating a folder that is younger than this
constexpr u64 heartbeat_limit_ns = 10 * ns_per_s;

constexpr const char* still_alive =
    "a process of the run is still running, possibly in another pid namespace, and holds the run's lock; the "
    "process ends automatically";

constexpr const char* run_has_begun = "a run of this name has started";

constexpr std::pair<const char*, const char*> preserved[] = {{"log", "logs"},
                                                             {"dead letters", "dead-letters"}};

bool is_ours(const fs::path& path, mode_t type, struct stat& info) {
    return ::lstat(path.c_str(), &info) == 0 && info.st_uid == ::geteuid() && (info.st_mode & S_IFMT) == type;
}

bool is_fresh(const struct stat& info) { return info.st_mtime + fresh_s > ::time(nullptr); }

/// Returns, for the path of each mapped file, one of the processes that map it. Only processes that this
/// process may inspect are considered (this user's processes; for root, all).
std::map<std::string, int> mapped_files(const std::string& folder) {
    std::map<std::string, int> users;
    const std::string wanted = folder + "/" + std::string(object_prefix);
    for (const fs::path& process : entries_of("/proc")) {
        const int pid = std::atoi(process.filename().c_str());
        if (pid <= 0) continue;
        std::ifstream maps(process / "maps");
        for (std::string line; std::getline(maps, line);)
            if (const auto at = line.find(wanted); at != std::string::npos)
                users.emplace(line.substr(at), pid);
    }
    return users;
}

/// Returns true if the block's heartbeat shows that a supervisor in another pid namespace is alive. Needed
/// for runs of another build, whose supervisors hold no lock on the block.
bool heart_beats(const std::string& run_id) {
    try {
        const shm::segment s = shm::segment::observe(run_id);
        const u64 beat = s.block().supervisor_heartbeat_ns.load(std::memory_order_relaxed), now = now_ns();
        return beat != 0 && beat <= now && beat + heartbeat_limit_ns > now;  // a time in the future was
                                                                             // measured by another clock
    } catch (const error&) {
        return false;  // the block has another version or was never finished; in this case the other checks
                       // are authoritative
    }
}

/// Returns true if a process in any namespace holds a lock on the object: the supervisor, a stage, or a child
/// that one of them has forked. Also true if that can't be determined.
bool is_held(const std::string& object) {
    const shm::unique_fd fd(::open(object.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    return fd ? shm::is_locked_elsewhere(fd.get()) : errno != ENOENT;
}

/// `object` is the path of a trace's object or of a control block's object. Returns the path of the control
/// block's object of the same run.
std::string block_of(const std::string& object) {
    return object.ends_with(shm::trace_suffix)
               ? object.substr(0, object.size() - std::string_view(shm::trace_suffix).size())
               : object;
}

// While the exclusive lock is held, no run can begin to use the object, because a run first takes its lock
// and then checks that the object still has a name (shm/segment.hpp).
std::string remove_object(const std::string& object) {
    constexpr const char* in_use = "a process of its run is running and holds the run's lock";
    if (is_held(block_of(object))) return in_use;
    const shm::unique_fd fd(::open(object.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return errno == ENOENT ? "" : errno_text(errno);
    if (const int failed = shm::lock_exclusive(fd.get()); failed != 0)
        return failed == EAGAIN ? in_use : errno_text(failed);
    struct stat locked {
    }, named{};
    if (::fstat(fd.get(), &locked) != 0 || ::lstat(object.c_str(), &named) != 0 ||
        locked.st_ino != named.st_ino)
        return "";  // removed in the meantime
    return ::unlink(object.c_str()) == 0 || errno == ENOENT ? "" : errno_text(errno);
}

/// Returns true if a process listens at the socket, or if that can't be determined.
bool is_served(const std::string& socket) {
    try {
        const shm::unique_fd connected = shm::connect_to(socket, ns_per_s);
        return connected || errno != ECONNREFUSED;
    } catch (const error&) {
        return true;
    }
}

std::string gone_text(const run::record& r) {
    if (run::is_of_here(r)) return fmt::format("its supervisor (pid {}) has ended", r.supervisor.pid);
    return fmt::format(
        "its supervisor (pid {} of another namespace or boot) has ended: no process holds its lock",
        r.supervisor.pid);
}

/// A folder without a record belongs to a run that died at its start or end, or to a run that is just
/// starting.
std::string death_without_record(const std::string& folder, bool lock_is_ours) {
    struct stat info {};
    const std::string socket = run::control_socket(folder), lock = shm::folder_lock(folder);
    if ((!lock_is_ours && shm::has_leader(folder)) || run::has_members(folder)) return "";
    if (is_ours(socket, S_IFSOCK, info))
        return is_fresh(info) || is_served(socket)
                   ? ""
                   : "it has no run.json, and no process listens at its socket";
    // if there was no lock file, this process's open() has just created it
    if (lock_is_ours || (is_ours(lock, S_IFREG, info) && !is_fresh(info)))
        return "it has no run.json, and no process holds its lock";
    return "";
}

/// Returns the reason why the supervisor of this folder is known to be dead; empty if the supervisor is alive
/// or the folder has no run. `kept` is not empty if another process of the run may be alive.
std::string death_of(const std::string& folder, std::string& kept, bool lock_is_ours = false) {
    const auto record = run::read_record(folder);
    if (!record) return death_without_record(folder, lock_is_ours);
    const run::liveness state = run::liveness_of(*record, lock_is_ours);
    if (state == run::liveness::alone) kept = still_alive;
    return state == run::liveness::led ? "" : gone_text(*record);
}

/// A folder that contains only pictures is not a leftover.
bool has_more_than_pictures(const std::string& folder) {
    const auto all = entries_of(folder);
    return std::any_of(all.begin(), all.end(), [](const fs::path& p) { return p.filename() != "pictures"; });
}

/// Returns true for a run that has ended and has intentionally left a folder: logs or dead letters. The
/// result may also be true for a run that is just starting; such a run holds the lock.
bool is_preserved(const std::string& folder, const std::string& below) {
    std::error_code ignored;
    return fs::is_directory(folder + "/" + below, ignored) && !fs::exists(folder + "/run.json", ignored) &&
           !fs::exists(run::control_socket(folder), ignored);
}

/// Removes the folder's lock file, whose lock the caller holds, and the folder if it is then empty.
std::string remove_folder(const fs::path& folder) {
    std::error_code failed;
    fs::remove(shm::folder_lock(folder.string()), failed);
    fs::remove(folder, failed);
    return failed && failed != std::errc::directory_not_empty ? failed.message() : "";
}

/// The caller holds the folder's lock.
std::string remove_preserved(const leftover& l, const fs::path& folder) {
    std::error_code failed;
    if (!is_preserved(folder.string(), fs::path(l.path).filename().string()))
        return fs::exists(l.path, failed) ? run_has_begun : "";
    fs::remove_all(l.path, failed);
    return failed ? failed.message() : remove_folder(folder);
}

/// The caller holds the folder's lock. An interrupted removal can be resumed, because the record is removed
/// after all other files, and only the lock file is removed after the record.
std::string remove_run_folder(const leftover& l) {
    std::error_code failed;
    const auto record = run::read_record(l.path);  // in the meantime a new run may have started here and died
    std::string kept;
    if (death_of(l.path, kept, true).empty() || (record ? record->run_id : "") != l.run_id)
        return run_has_begun;
    if (!kept.empty()) return kept;
    if (!shm::end_marked_processes(shm::mps_mark(shm::mps_folder(l.path)), 3 * ns_per_s))
        return "its MPS daemon can't be ended";
    if (record && shm::is_folder_name(record->run_id) && run::keep_lost_run(l.path).empty())
        return "the data of the run can't be saved";
    for (const fs::path& each : entries_of(l.path)) {
        const std::string name = each.filename().string();
        if (name == "pictures" || name == "dead-letters" || name == "run.json" || name == "lock") continue;
        fs::remove_all(each, failed);
        if (failed) return fmt::format("{}: {}", each.string(), failed.message());
    }
    fs::remove(fs::path(l.path) / "run.json", failed);
    return failed ? failed.message() : remove_folder(l.path);
}

std::vector<std::string> default_runs() {
    std::set<std::string> folders = {run::runs_folder(), fmt::format("/tmp/carousel-{}", ::geteuid())};
    return {folders.begin(), folders.end()};
}

}  // namespace

bool leftover::on_purpose() const noexcept {
    return std::any_of(std::begin(preserved), std::end(preserved),
                       [&](const auto& each) { return kind == each.first; });
}

std::vector<leftover> find_leftovers(const clean_places& places) {
    std::vector<leftover> found;
    std::set<std::string> living;
    std::map<std::string, std::string> names;  // the names of the dead runs, by run_id
    const std::map<std::string, int> mapped = mapped_files(places.shared_memory);
    for (const std::string& runs : places.runs.empty() ? default_runs() : places.runs) {
        for (const fs::path& folder : entries_of(runs)) {
            struct stat info {};
            if (!is_ours(folder, S_IFDIR, info)) continue;
            const auto record = run::read_record(folder.string());
            std::string kept;
            const std::string why = death_of(folder.string(), kept);
            if (record && why.empty()) living.insert(record->run_id);
            for (const auto& [kind, below] : preserved)
                if (why.empty() && is_preserved(folder.string(), below) && !shm::has_leader(folder.string()))
                    found.push_back({kind, (folder / below).string(), folder.filename().string(), "",
                                     bytes_in(folder / below), "its run has ended", ""});
            if (why.empty() || !has_more_than_pictures(folder.string())) continue;
            leftover l{"runtime directory",
                       folder.string(),
                       folder.filename().string(),
                       record ? record->run_id : "",
                       bytes_in(folder),
                       why,
                       kept};
            const auto user = mapped.find(places.shared_memory + "/" + std::string(object_prefix) + l.run_id);
            if (!l.run_id.empty() && user != mapped.end())
                l.kept = fmt::format("process {} of the run is still running; it ends automatically",
                                     user->second);
            names[l.run_id] = l.name;
            found.push_back(std::move(l));
        }
    }
    for (const fs::path& object : entries_of(places.shared_memory)) {
        struct stat info {};
        const std::string file = object.filename().string();
        if (!file.starts_with(object_prefix) || !is_ours(object, S_IFREG, info)) continue;
        std::string run_id = file.substr(object_prefix.size());
        if (run_id.ends_with(shm::trace_suffix))
            run_id.resize(run_id.size() - std::string_view(shm::trace_suffix).size());
        const bool known_dead = names.count(run_id) != 0;
        if (living.count(run_id) != 0 || (!known_dead && is_fresh(info))) continue;
        const auto user = mapped.find(object.string());
        const bool held = is_held(object.string()) || is_held(block_of(object.string()));
        // the object then belongs to a run whose folder is not visible from here
        if (!known_dead && (held || user != mapped.end() || heart_beats(run_id))) continue;
        leftover l{"shared memory",
                   object.string(),
                   known_dead ? names[run_id] : "",
                   run_id,
                   static_cast<u64>(info.st_size),
                   known_dead ? "its run is dead" : "no process holds its lock or maps it",
                   ""};
        if (held) l.kept = still_alive;
        if (user != mapped.end())
            l.kept =
                fmt::format("process {} of the run is still running; it ends automatically", user->second);
        found.push_back(std::move(l));
    }
    struct stat info {};
    for (leftover& l : dead_spaces())
        if (is_ours(l.path, S_IFDIR, info) && !is_fresh(info)) found.push_back(std::move(l));
    return found;
}

std::string remove_leftover(const leftover& l) {
    if (!l.kept.empty()) return l.kept;
    std::error_code failed;
    if (l.kind == "shared memory") return remove_object(l.path);
    if (l.kind == "space") return remove_dead_space(l.name);
    const fs::path folder = l.on_purpose() ? fs::path(l.path).parent_path() : fs::path(l.path);
    const shm::unique_fd lock = shm::lead_folder(folder.string());
    if (!lock) return fs::exists(folder, failed) ? run_has_begun : "";
    return l.on_purpose() ? remove_preserved(l, folder) : remove_run_folder(l);
}

u32 remove_driver_leftovers(i32 pid, const char* folder) noexcept try {
    const std::string prefix = fmt::format("cuda.shm.{:x}.{:x}.", ::getuid(), static_cast<u32>(pid));
    u32 removed = 0;
    std::error_code why;
    for (const auto& file : std::filesystem::directory_iterator(folder, why)) {
        if (!file.path().filename().string().starts_with(prefix)) continue;
        std::error_code failed;
        if (std::filesystem::remove(file.path(), failed)) ++removed;
    }
    return removed;
} catch (...) {  // memory ran out, or the folder has changed; the run continues nevertheless, because the
                 // files take little space
    return 0;
}

}  // namespace carousel::supervisor
