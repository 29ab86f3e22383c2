#include "hosts/seal.hpp"

#include <sys/random.h>

#include <cerrno>

#include "core/errors.hpp"

#ifdef CAROUSEL_HAS_CRYPTO
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#endif

namespace carousel::hosts {

#ifdef CAROUSEL_HAS_CRYPTO
bool can_seal() noexcept { return true; }

seal_bytes seal(std::string_view key, std::initializer_list<std::string_view> parts) {
    std::string all;
    for (const std::string_view part : parts) all += part;
    seal_bytes out{};
    unsigned length = 0;
    if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(all.data()), all.size(), out.data(),
             &length) == nullptr ||
        length != out.size())
        throw shm_error("HMAC-SHA256 failed in libcrypto");
    return out;
}
#else
bool can_seal() noexcept { return false; }

seal_bytes seal(std::string_view, std::initializer_list<std::string_view>) {
    throw config_error("this build has no libcrypto, which pipelines over several hosts need");
}
#endif

bool same_seal(const seal_bytes& a, std::string_view b) {
    if (b.size() != a.size()) return false;
    unsigned differs = 0;
    for (std::size_t k = 0; k < a.size(); ++k)
        differs |= static_cast<unsigned>(a[k]) ^ static_cast<unsigned>(static_cast<u8>(b[k]));
    return differs == 0;
}

seal_bytes fresh_bytes() {
    seal_bytes out{};
    if (::getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size()))
        throw shm_error("random numbers for a hello between hosts: " + errno_text(errno));
    return out;
}

}  // namespace carousel::hosts
