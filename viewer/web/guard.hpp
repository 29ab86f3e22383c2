#pragma once
// Who may ask for what. The page is for the people of this machine: a name in the Host header that isn't this
// machine's means that a foreign page has pointed its own name here (DNS rebinding), and is refused. Actions
// take the token as well, which no foreign page knows (core/token.hpp).

#include <string_view>

namespace carousel::viewer::web {

/// The Host header's value is an IP address, "localhost" or this machine's own name, with or without a port.
[[nodiscard]] bool is_own_host(std::string_view host);
/// The value of `key` in "a=1&b=2"; "" when it isn't there. Nothing is decoded: tokens are hexadecimal,
/// numbers are numbers.
[[nodiscard]] std::string_view query_value(std::string_view query, std::string_view key) noexcept;

}  // namespace carousel::viewer::web
