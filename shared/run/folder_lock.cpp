#include "run/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>

#include "shm/file_lock.hpp"

namespace carousel::run {
namespace {

namespace fs = std::filesystem;

/// True if a process holds the flock() of that file, or if that cannot be determined.
bool is_flocked(const std::string& path) {
    const shm::unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return errno != ENOENT;
    return ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
}

bool is_port_lock(const std::string& name) { return name.starts_with("port-") && name.ends_with(".lock"); }

bool has_ports(const std::string& folder) {
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        if (is_port_lock(at->path().filename().string()) && is_flocked(at->path().string())) return true;
    return false;
}

}  // namespace

std::string folder_lock(const std::string& folder) { return folder + "/lock"; }

bool has_supervisor(const std::string& folder) { return is_flocked(folder_lock(folder)); }

bool has_stages(const std::string& folder) {
    const shm::unique_fd file(::open(folder_lock(folder).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    return file ? shm::is_locked_elsewhere(file.get()) : errno != ENOENT;
}

bool has_members(const std::string& folder) { return has_stages(folder) || has_ports(folder); }

shm::unique_fd lock_folder(const std::string& folder) {
    shm::unique_fd file(::open(folder_lock(folder).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file && shm::lock_shared(file.get()) != 0) file.reset();
    return file;
}

}  // namespace carousel::run
