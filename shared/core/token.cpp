#include "core/token.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel {

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

}  // namespace carousel
