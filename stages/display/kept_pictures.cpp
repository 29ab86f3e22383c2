#include "stages/display/kept_pictures.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/errors.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::stages {
namespace fs = std::filesystem;

kept_pictures::kept_pictures(picture_name names, fs::path folder, fs::path note, u64 keep)
    : names_(std::move(names)), folder_(std::move(folder)), keep_(keep) {
    // an existing file keeps its time
    const shm::unique_fd fd(::open(note.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    struct stat made {};
    if (!fd || ::fstat(fd.get(), &made) != 0)
        throw output_error(fmt::format("can't write {}: {}", note.string(), errno_text(errno)));
    begun_ = made.st_mtim;
}

bool kept_pictures::is_of_this_run(const fs::path& path) const noexcept {
    struct stat file {};
    if (::lstat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return false;
    return std::pair(file.st_mtim.tv_sec, file.st_mtim.tv_nsec) >= std::pair(begun_.tv_sec, begun_.tv_nsec);
}

// Called with the first frame and not earlier, because a standby may wait for hours while its predecessor
// writes.
void kept_pictures::scan_folder() {
    if (std::exchange(scanned_, true)) return;
    std::error_code failed;
    for (fs::directory_iterator at(names_.parent(folder_), failed), end; !failed && at != end;
         at.increment(failed))
        if (const auto frame_number = names_.number_of(at->path().filename().string());
            frame_number && is_of_this_run(at->path()))
            existing_.insert(*frame_number);
}

void kept_pictures::wrote(u64 frame_number) {
    const std::lock_guard lock(mutex_);
    scan_folder();
    existing_.insert(frame_number);
    newest_ = std::max(newest_, frame_number);
    remove_oldest();
}

void kept_pictures::passed(u64 frame_number) {
    const std::lock_guard lock(mutex_);
    scan_folder();
    newest_ = std::max(newest_, frame_number);
    remove_oldest();
}

void kept_pictures::remove_oldest() {
    while (!existing_.empty() && newest_ >= keep_ && *existing_.begin() <= newest_ - keep_) {
        const fs::path path = names_.of(*existing_.begin(), folder_);
        // an error is ignored: a picture that cannot be removed must not block the run
        if (is_of_this_run(path)) ::unlink(path.c_str());
        existing_.erase(existing_.begin());
    }
}

}  // namespace carousel::stages
