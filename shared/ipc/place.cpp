#include "ipc/place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "core/errors.hpp"
#include "ipc/space_block.hpp"
#include "shm/fd_socket.hpp"
#include "shm/file_lock.hpp"

namespace carousel::ipc {
namespace {

void make_private(const std::string& folder) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        throw shm_error(fmt::format("creating the folder {}: {}", folder, errno_text(errno)));
    struct stat info {};
    if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
        throw shm_error(fmt::format(
            "{} is no folder of user {}: remove it, or set XDG_RUNTIME_DIR to a folder that you own", folder,
            ::geteuid()));
    if ((info.st_mode & 0777) != 0700 && ::chmod(folder.c_str(), 0700) != 0)
        throw shm_error(fmt::format("closing {} to others: {}", folder, errno_text(errno)));
}

}  // namespace

std::string spaces_folder() {
    const char* folder = std::getenv("XDG_RUNTIME_DIR");
    struct stat info {};
    // Under sudo and in containers the variable may name another user's folder, or a missing one.
    if (folder != nullptr && folder[0] == '/' && ::stat(folder, &info) == 0 && S_ISDIR(info.st_mode) &&
        info.st_uid == ::geteuid())
        return std::string(folder) + "/carousel-spaces";
    return fmt::format("/tmp/carousel-spaces-{}", ::geteuid());
}

hold_place place_of(const std::string& name) {
    bool well = !name.empty() && name.size() <= longest_name && name.front() != '.' && name.back() != '.';
    for (const char c : name)
        well = well && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.');
    if (!well)
        throw config_error(
            fmt::format("\"{}\" can't be the name of a space: 1 to {} letters, digits, -, _ and inner dots",
                        name, longest_name));
    return {spaces_folder() + "/" + name};
}

void make_place_folder(const hold_place& p) {
    make_private(p.folder.substr(0, p.folder.rfind('/')));
    make_private(p.folder);
}

bool has_clients(const hold_place& p) {
    const shm::unique_fd lock(::open(p.lock().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    return lock ? shm::is_locked_elsewhere(lock.get()) : errno != ENOENT;
}

void write_record(const hold_place& p, const hold_record& r) {
    const std::string fresh = p.record() + ".new";
    std::ofstream out(fresh, std::ios::trunc);
    out << r.pid << ' ' << r.id << '\n';
    out.close();
    if (!out || std::rename(fresh.c_str(), p.record().c_str()) != 0)
        throw shm_error(fmt::format("writing {}: {}", p.record(), errno_text(errno)));
}

std::optional<hold_record> read_record(const hold_place& p) {
    std::ifstream in(p.record());
    hold_record r;
    if (in >> r.pid >> r.id && !r.id.empty()) return r;
    return std::nullopt;
}

}  // namespace carousel::ipc
