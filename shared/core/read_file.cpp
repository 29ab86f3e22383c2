#include "core/read_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace carousel {

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

}  // namespace carousel
