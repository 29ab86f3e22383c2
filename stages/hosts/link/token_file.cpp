#include "stages/hosts/link/token_file.hpp"

#include "core/secret.hpp"
#include "hosts/seal.hpp"

namespace carousel::hosts {

token_file token_file::read(const std::string& path) {
    return token_file(read_secret(path, "the token of a link"));
}

// The proof covers the hello: an intermediary cannot change the sender or the format.
proof token_file::prove(side prover, const hello& h, const nonce& of_receiver) const {
    const message_bytes encoded = encode(h);
    const char of = static_cast<char>(prover);
    return seal(
        secret_,
        {{reinterpret_cast<const char*>(encoded.data()), encoded.size()}, {&of, 1}, view_of(of_receiver)});
}

bool token_file::fits(const proof& given, side prover, const hello& h, const nonce& of_receiver) const {
    return same_seal(prove(prover, h, of_receiver), view_of(given));
}

}  // namespace carousel::hosts
