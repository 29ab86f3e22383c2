#include "stages/hosts/link/token_file.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>

#include "core/errors.hpp"
#include "core/secret_file.hpp"

namespace carousel::hosts {

token_file token_file::read(const std::string& path) {
    return token_file(read_secret(path, "the token of a link"));
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
