#include "core/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "core/types.hpp"

namespace carousel {
namespace {

constexpr std::size_t shortest_secret = 16, longest_secret = 4096;

class descriptor {
public:
    explicit descriptor(int fd) noexcept : fd_(fd) {}
    ~descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

}  // namespace

std::string new_token() {
    std::array<u8, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        throw shm_error(fmt::format("no random numbers for a token: {}", errno_text(errno)));
    std::string text;
    for (const u8 b : bytes) text += fmt::format("{:02x}", b);
    return text;
}

bool same_token(std::string_view given, std::string_view token) noexcept {
    if (token.empty() || given.size() != token.size()) return false;
    unsigned different = 0;
    for (std::size_t k = 0; k < token.size(); ++k)
        different |= static_cast<unsigned>(static_cast<unsigned char>(given[k]) ^
                                           static_cast<unsigned char>(token[k]));
    return different == 0;
}

std::string read_secret(const std::string& path, const std::string& what) {
    const descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (fd.get() < 0)
        throw config_error(
            fmt::format("{}, {}: {}. Create one for both hosts, e.g. `(umask 077; openssl rand -hex 32 > "
                        "{})`, and copy it over ssh",
                        what, path, errno_text(errno), path));
    struct stat s {};
    if (::fstat(fd.get(), &s) != 0 || !S_ISREG(s.st_mode))
        throw config_error(fmt::format("{}, {}, is not a regular file", what, path));
    if (s.st_uid != ::geteuid())
        throw config_error(fmt::format("{}, {}, belongs to another user", what, path));
    if ((s.st_mode & 0077U) != 0)
        throw config_error(fmt::format("{}, {}, has mode {:04o}: other users can read it. Run `chmod 600 {}`",
                                       what, path, s.st_mode & 07777U, path));
    std::string secret(longest_secret, '\0');
    const ssize_t got = read_whole(fd.get(), secret.data(), secret.size());
    secret.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
    if (secret.size() < shortest_secret)
        throw config_error(fmt::format("{}, {}, has {} bytes; expected at least {}", what, path,
                                       secret.size(), shortest_secret));
    return secret;
}

void write_secret(const std::string& path, const std::string& secret) {
    const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
    ::unlink(temporary.c_str());
    const auto fail = [&](int why) {
        ::unlink(temporary.c_str());
        throw output_error(fmt::format("the token {} can't be written: {}", path, no_room_text(why, "")));
    };
    const descriptor fd(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    const std::string text = secret + "\n";
    if (fd.get() < 0 || !write_whole(fd.get(), text.data(), text.size())) fail(errno);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(errno);
}

std::string new_secret() {
    std::array<u8, 32> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        throw shm_error(fmt::format("random numbers for a token: {}", errno_text(errno)));
    std::string out;
    for (const u8 b : bytes) out += fmt::format("{:02x}", b);
    return out;
}

}  // namespace carousel
