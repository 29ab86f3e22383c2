#include "stages/hosts/link/token_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/errors.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::hosts {
namespace {
constexpr std::size_t shortest_secret = 16, longest_secret = 4096;
}

token_file token_file::read(const std::string& path) {
    const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd)
        throw config_error(
            fmt::format("the token of a link, {}: {}. Make one for both hosts, e.g. `(umask 077; openssl "
                        "rand -hex 32 > {})`, "
                        "and copy it over ssh",
                        path, errno_text(errno), path));
    struct stat s {};
    if (::fstat(fd.get(), &s) != 0 || !S_ISREG(s.st_mode))
        throw config_error(fmt::format("the token of a link, {}, is no plain file", path));
    if (s.st_uid != ::geteuid())
        throw config_error(fmt::format("the token of a link, {}, belongs to another user", path));
    if ((s.st_mode & 0077U) != 0)
        throw config_error(
            fmt::format("the token of a link, {}, has mode {:04o}: others may read it. `chmod 600 {}`", path,
                        s.st_mode & 07777U, path));
    std::string secret(longest_secret, '\0');
    const ssize_t got = ::read(fd.get(), secret.data(), secret.size());
    secret.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
    if (secret.size() < shortest_secret)
        throw config_error(fmt::format("the token of a link, {}, has {} bytes; expected {} at least", path,
                                       secret.size(), shortest_secret));
    return token_file(secret);
}

// The hello is part of it: nobody in between can change who sends what.
proof token_file::prove(side who, const hello& h, const nonce& of_receiver) const {
    message_bytes said = encode(h);
    said.push_back(static_cast<std::byte>(who));
    for (const u8 b : of_receiver) said.push_back(static_cast<std::byte>(b));
    proof out{};
    unsigned length = 0;
    if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
             reinterpret_cast<const unsigned char*>(said.data()), said.size(), out.data(),
             &length) == nullptr ||
        length != out.size())
        throw shm_error("HMAC-SHA256 of a link's hello failed in libcrypto");
    return out;
}

bool token_file::fits(const proof& given, side who, const hello& h, const nonce& of_receiver) const {
    const proof expected = prove(who, h, of_receiver);
    return CRYPTO_memcmp(expected.data(), given.data(), given.size()) == 0;
}

nonce new_nonce() {
    nonce out{};
    if (::getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size()))
        throw shm_error(fmt::format("random numbers for a link's hello: {}", errno_text(errno)));
    return out;
}

}  // namespace carousel::hosts
