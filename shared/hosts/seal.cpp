#include "hosts/seal.hpp"

#include <dlfcn.h>
#include <sys/random.h>

#include <cerrno>

#include "core/errors.hpp"

#ifdef CAROUSEL_HAS_CRYPTO
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/opensslv.h>
#endif

namespace carousel::hosts {

#ifdef CAROUSEL_HAS_CRYPTO
namespace {

/// The library is loaded at its first use, so that systems without libcrypto run everything except pipelines
/// over several hosts.
struct crypto_library {
    decltype(&::HMAC) hmac = nullptr;
    decltype(&::EVP_sha256) sha256 = nullptr;
};

const crypto_library& crypto() noexcept {
    static const crypto_library loaded = [] {
        void* const library =
            ::dlopen("libcrypto.so." OPENSSL_MSTR(OPENSSL_SHLIB_VERSION), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return crypto_library{};
        return crypto_library{reinterpret_cast<decltype(&::HMAC)>(::dlsym(library, "HMAC")),
                              reinterpret_cast<decltype(&::EVP_sha256)>(::dlsym(library, "EVP_sha256"))};
    }();
    return loaded;
}

}  // namespace

bool can_seal() noexcept { return crypto().hmac != nullptr && crypto().sha256 != nullptr; }

seal_bytes seal(std::string_view key, std::initializer_list<std::string_view> parts) {
    if (!can_seal())
        throw config_error("libcrypto, which pipelines over several hosts need, is not installed");
    std::string all;
    for (const std::string_view part : parts) all += part;
    seal_bytes out{};
    unsigned length = 0;
    if (crypto().hmac(crypto().sha256(), key.data(), static_cast<int>(key.size()),
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
