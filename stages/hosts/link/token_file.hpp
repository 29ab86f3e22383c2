#pragma once
// What both ends of a link know and nobody else: a file of its owner's (mode 0600). It never goes over the
// link; each side proves by an HMAC-SHA256 over both nonces and the hello that it has it. That is no
// encryption, and what comes behind the WELCOME bears no proof: who can change packets under way can change
// frames.

#include <string>

#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

enum class side : u8 { sending = 1, receiving = 2 };

class token_file {
public:
    token_file() = default;
    explicit token_file(std::string secret) : secret_(std::move(secret)) {}
    /// Throws config_error: it isn't there, isn't this user's, others may read it, or holds fewer than 16
    /// bytes.
    [[nodiscard]] static token_file read(const std::string& path);

    [[nodiscard]] proof prove(side prover, const hello& h, const nonce& of_receiver) const;
    /// In a time that depends on nothing secret.
    [[nodiscard]] bool fits(const proof& given, side prover, const hello& h, const nonce& of_receiver) const;

private:
    std::string secret_;
};

}  // namespace carousel::hosts
