#include "core/private_address.hpp"

#include <arpa/inet.h>

#include "core/types.hpp"

namespace carousel {
namespace {

/// Returns 0 if the text is not an address.
u32 number_of(const std::string& text) noexcept {
    in_addr out{};
    return ::inet_pton(AF_INET, text.c_str(), &out) == 1 ? ntohl(out.s_addr) : 0;
}

}  // namespace

bool is_host_address(const std::string& text) noexcept { return number_of(text) != 0; }

bool is_private_address(const std::string& text) noexcept {
    const u32 a = number_of(text);
    const auto within = [a](u32 net, unsigned bits) { return (a >> (32 - bits)) == (net >> (32 - bits)); };
    return within(0x0A000000, 8) || within(0xAC100000, 12) || within(0xC0A80000, 16) ||
           within(0x64400000, 10) || within(0xA9FE0000, 16) || within(0x7F000000, 8);
}

}  // namespace carousel
