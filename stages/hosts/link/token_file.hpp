#pragma once
// The shared secret of both ends of a link: a file that only its owner can read (mode 0600). The secret is
// never sent over the link; each side proves knowledge of it with an HMAC-SHA256 over both nonces and the
// hello. This is not encryption, and messages after the WELCOME have no proof: an attacker that can change
// packets in transit can change frames.

#include <string>

#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

enum class side : u8 { sending = 1, receiving = 2 };

class token_file {
public:
    token_file() = default;
    explicit token_file(std::string secret) : secret_(std::move(secret)) {}
    /// Throws config_error if the file does not exist, belongs to another user, can be read by others, or has
    /// fewer than 16 bytes.
    [[nodiscard]] static token_file read(const std::string& path);

    [[nodiscard]] proof prove(side prover, const hello& h, const nonce& of_receiver) const;
    /// The running time does not depend on the secret.
    [[nodiscard]] bool fits(const proof& given, side prover, const hello& h, const nonce& of_receiver) const;

private:
    std::string secret_;
};

}  // namespace carousel::hosts
