#pragma once
// The checks that a request passes before it is answered. The dashboard is for the users of this machine. A
// Host that is neither an IP address nor a name of this machine means that the name of another site resolves
// to this address (DNS rebinding). Such a request is refused, except for paths that any monitoring system may
// read. Actions also need the token, which no other site knows (core/secret.hpp).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace carousel::viewer::web {

/// True if the Host header's value is an IP address, "localhost", this machine's own name or one of `names`
/// (--http-host), with or without a port. Case is ignored.
[[nodiscard]] bool is_own_host(std::string_view host, const std::vector<std::string>& names = {});
/// True for /metrics and /healthz, which are available for any Host.
[[nodiscard]] bool is_open_to_any_host(std::string_view path) noexcept;

/// A request target in one of the forms that a server must accept (RFC 9112, 3.2).
struct request_target {
    std::string_view authority;  ///< authority of the absolute form, which overrides Host; "" for the origin
                                 ///< form
    std::string_view path, query;
};
/// Splits "/status.json?x=1" or "http://host:8080/status.json?x=1"; nullopt for any other form.
[[nodiscard]] std::optional<request_target> split_target(std::string_view target) noexcept;

/// Returns the value of `key` in "a=1&b=2"; "" if it is missing. Not percent-decoded: the values are
/// hexadecimal tokens and numbers.
[[nodiscard]] std::string_view query_value(std::string_view query, std::string_view key) noexcept;

}  // namespace carousel::viewer::web
