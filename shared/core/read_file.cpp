#include "core/read_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace carousel {
namespace fs = std::filesystem;

std::optional<std::string> read_file(const std::string& path, std::size_t max_bytes) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    std::string text;
    char part[16384];
    ssize_t got = 0;
    while ((got = ::read(fd, part, sizeof part)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0) text.append(part, static_cast<std::size_t>(got));
        if (text.size() > max_bytes) break;
    }
    const int why = text.size() > max_bytes ? EFBIG : errno;
    ::close(fd);
    errno = why;
    if (got < 0 || text.size() > max_bytes) return std::nullopt;
    return text;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
    std::vector<fs::path> all;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        all.push_back(at->path());
    std::sort(all.begin(), all.end());
    return all;
}

u64 bytes_in(const fs::path& folder) {
    u64 sum = 0;
    std::error_code failed;
    for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
         at.increment(failed)) {
        std::error_code gone;
        const bool counts = fs::is_regular_file(fs::symlink_status(at->path(), gone));
        const std::uintmax_t bytes = counts ? fs::file_size(at->path(), gone) : 0;
        if (!gone) sum += static_cast<u64>(bytes);  // the size of a file that has just been removed is -1
    }
    return sum;
}

}  // namespace carousel
