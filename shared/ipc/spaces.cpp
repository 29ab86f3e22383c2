#include "ipc/spaces.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "ipc/memory.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::ipc {
namespace {

namespace fs = std::filesystem;
constexpr u64 answer_patience_ns = ns_per_s;

bool is_our_folder(const std::string& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

// Returns true also for a stopped holder, which doesn't accept connections, but still listens.
bool has_listener(const std::string& socket) {
    const shm::unique_fd there = shm::connect_to(socket, answer_patience_ns);
    return there || (errno != ECONNREFUSED && errno != ENOENT);
}

found_space found_at(const std::string& name) {
    found_space s{name, {spaces_folder() + "/" + name}};
    const auto record = read_record(s.place);
    if (record) s.holder = record->pid;
    if (has_listener(s.place.socket())) {
        s.state = space_state::held;
    } else if (record) {
        s.clients = processes_with(record->id);
        if (!s.clients.empty() || shm::has_joined(s.place.folder)) s.state = space_state::orphaned;
    }
    return s;
}

}  // namespace

std::vector<found_space> spaces_here() {
    std::vector<found_space> all;
    std::error_code failed;
    for (fs::directory_iterator at(spaces_folder(), failed), end; !failed && at != end; at.increment(failed))
        if (is_our_folder(at->path().string())) all.push_back(found_at(at->path().filename().string()));
    std::sort(all.begin(), all.end(),
              [](const found_space& a, const found_space& b) { return a.name < b.name; });
    return all;
}

std::optional<found_space> find_space(const std::string& name) {
    if (name.empty() || name.find('/') != std::string::npos || name.front() == '.' ||
        !is_our_folder(spaces_folder() + "/" + name))
        return std::nullopt;
    return found_at(name);
}

space_view inspect_space(const found_space& s) {
    const shm::unique_fd socket = shm::connect_to(s.place.socket(), answer_patience_ns);
    shm::message m;
    const nlohmann::json reply =
        socket ? ask_holder(socket.get(), inspect_request(), m, answer_patience_ns) : nlohmann::json();
    if (reply.is_null())
        throw shm_error(fmt::format(
            "the space \"{}\": its holder (process {}) does not answer at {}: check whether it is stopped",
            s.name, s.holder, s.place.socket()));
    if (std::string why; read_member(reply, "busy", why))
        throw shm_error(fmt::format("the space \"{}\": {}", s.name, why));
    if (!reply.contains("space"))
        throw shm_error(
            fmt::format("the space \"{}\": its holder (process {}) can't list its contents because it is an "
                        "older build: hold the space again",
                        s.name, s.holder));
    return read_view(reply["space"]);
}

std::string remove_dead(const found_space& s) {
    const shm::unique_fd lock = shm::lead_folder(s.place.folder, shm::absent_lock::keep);
    if (!lock && errno == EWOULDBLOCK) return "a process holds it again";
    if (found_at(s.name).state != space_state::dead) return "it is in use again";
    std::error_code failed;
    // If a holder starts meanwhile, it detects that its lock file has been removed.
    fs::remove_all(s.place.folder, failed);
    return failed ? failed.message() : "";
}

}  // namespace carousel::ipc
