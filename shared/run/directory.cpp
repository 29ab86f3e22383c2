#include "run/directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/read_file.hpp"
#include "core/resource_limit.hpp"
#include "core/whole_io.hpp"
#include "run/folder_lock.hpp"

namespace carousel::run {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t longest_name = 40;

std::string pid_namespace() {
    std::error_code failed;
    return fs::read_symlink("/proc/self/ns/pid", failed).string();
}

std::string boot_id() {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string text;
    std::getline(in, text);
    return text;
}

void write_all(const std::string& file, const std::string& text) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) throw shm_error(fmt::format("writing {}: {}", file, no_room_text(errno, "")));
    const bool written = write_whole(fd, text.data(), text.size());
    const int code = errno;
    ::close(fd);
    if (written) return;
    ::unlink(file.c_str());
    throw shm_error(fmt::format("writing {}: {}", file, no_room_text(code, "")));
}

}  // namespace

std::string runs_folder() {
    const char* folder = std::getenv("XDG_RUNTIME_DIR");
    struct stat info {};
    // With sudo and in containers the variable can name another user's folder, or a folder that does not
    // exist.
    if (folder != nullptr && folder[0] == '/' && ::stat(folder, &info) == 0 && S_ISDIR(info.st_mode) &&
        info.st_uid == ::geteuid())
        return std::string(folder) + "/carousel";
    return fmt::format("/tmp/carousel-{}", ::geteuid());
}

std::string run_folder(const std::string& name) { return runs_folder() + "/" + name; }

std::string control_socket(const std::string& folder) { return folder + "/control.sock"; }

std::string port_lock(const std::string& folder, u32 seat, u32 epoch) {
    return fmt::format("{}/port-{}-{}.lock", folder, seat, epoch);
}

std::string record::socket() const { return control_socket(folder); }

void make_private_folder(const std::string& folder) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        throw shm_error(fmt::format("creating the folder {}: {}", folder, errno_text(errno)));
    struct stat info {};
    if (::lstat(folder.c_str(), &info) != 0)
        throw shm_error(fmt::format("looking at {}: {}", folder, errno_text(errno)));
    if (!S_ISDIR(info.st_mode))
        throw shm_error(fmt::format(
            "{} is no folder; remove it, or set XDG_RUNTIME_DIR to a folder that you own", folder));
    if (info.st_uid != ::geteuid())
        throw shm_error(
            fmt::format("{} belongs to user {}, this process runs as {}; remove it, or set XDG_RUNTIME_DIR "
                        "to a folder that you own",
                        folder, info.st_uid, ::geteuid()));
    if ((info.st_mode & 0777) != 0700 && ::chmod(folder.c_str(), 0700) != 0)
        throw shm_error(fmt::format("closing {} to others: {}", folder, errno_text(errno)));
}

std::string make_run_folder(const std::string& name) {
    make_private_folder(runs_folder());
    std::string folder = run_folder(name);
    make_private_folder(folder);
    return folder;
}

void write_whole_file(const std::string& path, const std::string& text) {
    const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
    write_all(temporary, text);
    if (::rename(temporary.c_str(), path.c_str()) == 0) return;
    const int code = errno;
    ::unlink(temporary.c_str());
    throw shm_error(fmt::format("writing {}: {}", path, no_room_text(code, "")));
}

void write_record(const std::string& folder, record r) {
    const clock_identity clock = own_clock();
    nlohmann::json text = {{"pid", r.supervisor.pid}, {"start_time", r.supervisor.start_time},
                           {"run_id", r.run_id},      {"name", r.name},
                           {"file", r.file},          {"pid_namespace", pid_namespace()},
                           {"boot_id", boot_id()},    {"time_namespace", clock.time_namespace}};
    if (clock.offset_ns) text["monotonic_offset_ns"] = *clock.offset_ns;
    write_whole_file(folder + "/run.json",
                     text.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::optional<record> read_record(const std::string& folder) {
    const std::optional<std::string> text = read_file(folder + "/run.json");
    if (!text) return std::nullopt;
    try {
        const nlohmann::json j = parse_json(*text, json_channel::document);
        record r;
        r.folder = folder;
        r.supervisor = {j.at("pid").get<i32>(), j.at("start_time").get<u64>()};
        r.run_id = j.at("run_id").get<std::string>();
        r.name = j.at("name").get<std::string>();
        r.file = j.value("file", "");
        r.pid_namespace = j.value("pid_namespace", "");
        r.boot_id = j.value("boot_id", "");
        r.clock.time_namespace = j.value("time_namespace", "");
        if (j.contains("monotonic_offset_ns")) r.clock.offset_ns = j.at("monotonic_offset_ns").get<i64>();
        return r;
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;
    }
}

bool is_of_here(const record& r) {
    const auto same = [](const std::string& recorded, const std::string& own) {
        return recorded.empty() || recorded == own;
    };
    return same(r.boot_id, boot_id()) && same(r.pid_namespace, pid_namespace()) &&
           same(r.clock.time_namespace, time_namespace());
}

bool is_alive(const record& r, bool lock_is_ours) {
    if (is_of_here(r)) return shm::is_alive(r.supervisor);
    return !lock_is_ours && (r.folder.empty() || has_supervisor(r.folder));
}

std::vector<record> recorded_runs() {
    std::vector<record> runs;
    std::error_code failed;
    for (fs::directory_iterator at(runs_folder(), failed), end; !failed && at != end; at.increment(failed)) {
        std::optional<record> r = read_record(at->path().string());
        if (!r) continue;
        r->name = at->path().filename().string();  // the socket is in this folder, whatever the record's name
        runs.push_back(std::move(*r));
    }
    std::sort(runs.begin(), runs.end(), [](const record& a, const record& b) { return a.name < b.name; });
    return runs;
}

std::vector<record> living_runs() {
    std::vector<record> runs = recorded_runs();
    std::erase_if(runs, [](const record& r) { return !is_alive(r); });
    return runs;
}

bool is_run_name(const std::string& name) noexcept {
    if (name.empty() || name.size() > longest_name || name.front() == '.' || name.back() == '.' ||
        name.front() == '-')
        return false;
    return std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    });
}

}  // namespace carousel::run
