#include "os/journal.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace carousel::supervisor {
namespace {

/// As in syslog(3).
int priority_of(log::level level) noexcept {
    switch (level) {
        case log::level::error:
            return 3;
        case log::level::warning:
            return 4;
        case log::level::info:
            return 6;
        case log::level::debug:
            return 7;
    }
    return 6;
}

// A value with a line break is preceded by its length, which is written as 8 bytes in little-endian order.
void add_field(std::string& to, std::string_view name, std::string_view value) {
    to += name;
    if (value.find('\n') == std::string_view::npos) {
        to += '=';
    } else {
        to += '\n';
        for (u32 shift = 0; shift < 64; shift += 8)
            to += static_cast<char>((static_cast<u64>(value.size()) >> shift) & 0xFFU);
    }
    to += value;
    to += '\n';
}

}  // namespace

bool is_journal(int fd) noexcept {
    const char* named = std::getenv("JOURNAL_STREAM");
    struct stat info {};
    if (named == nullptr || ::fstat(fd, &info) != 0) return false;
    char* end = nullptr;
    errno = 0;
    const unsigned long long device = std::strtoull(named, &end, 10);
    if (end == named || *end != ':') return false;
    const char* second = end + 1;
    const unsigned long long inode = std::strtoull(second, &end, 10);
    return errno == 0 && end != second && *end == '\0' && device == info.st_dev && inode == info.st_ino;
}

std::string journal_datagram(const journal_entry& e) {
    std::string out;
    add_field(out, "PRIORITY", std::to_string(priority_of(e.level)));
    add_field(out, "SYSLOG_IDENTIFIER", e.stage);
    add_field(out, "STAGE", e.stage);
    add_field(out, "STAGE_PID", std::to_string(e.pid));
    if (!e.pipeline.empty()) add_field(out, "PIPELINE", e.pipeline);
    add_field(out, "MESSAGE", e.message);
    return out;
}

journal::journal(std::string_view path) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof to.sun_path) return;
    std::memcpy(to.sun_path, path.data(), path.size());
    socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket_ && ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
        socket_.reset();
}

bool journal::send(const journal_entry& e) const {
    if (!socket_) return false;
    const std::string bytes = journal_datagram(e);
    ssize_t n = -1;
    do {
        n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n == static_cast<ssize_t>(bytes.size());
}

}  // namespace carousel::supervisor
