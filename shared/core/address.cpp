#include "core/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel {
namespace {

bool is_ipv4(const std::string& host) noexcept {
    in_addr a{};
    return ::inet_pton(AF_INET, host.c_str(), &a) == 1;
}

bool is_ipv6(const std::string& host) noexcept {
    in6_addr a{};
    return ::inet_pton(AF_INET6, host.c_str(), &a) == 1;
}

/// Returns 0 if the text is not an address.
u32 number_of(const std::string& text) noexcept {
    in_addr out{};
    return ::inet_pton(AF_INET, text.c_str(), &out) == 1 ? ntohl(out.s_addr) : 0;
}

}  // namespace

bool http_address::is_loopback() const noexcept {
    return host == "localhost" || host == "::1" || (is_ipv4(host) && host.starts_with("127."));
}

std::string http_address::text() const {
    return is_ipv6(host) ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

http_address parse_http_address(const std::string& text) {
    const auto refuse = [&](const std::string& why) {
        throw config_error(fmt::format(
            "--http {}: {}; expected ADDRESS:PORT or a port, e.g. 127.0.0.1:8080, 0.0.0.0:8080 or 8080", text,
            why));
    };
    http_address a;
    const auto colon = text.rfind(':');
    const bool has_host = colon != std::string::npos;
    const std::string port = has_host ? text.substr(colon + 1) : text;
    if (has_host && colon > 0) {
        a.host = text.substr(0, colon);
        const bool brackets = a.host.size() > 2 && a.host.front() == '[' && a.host.back() == ']';
        if (brackets) a.host = a.host.substr(1, a.host.size() - 2);
        // Host names are not accepted, because their address may change, and a local dashboard must not
        // become reachable from other machines.
        if (a.host != "localhost" && (brackets ? !is_ipv6(a.host) : !is_ipv4(a.host)))
            refuse(fmt::format("\"{}\" is not an IP address{}", a.host,
                               is_ipv6(a.host) ? " without brackets: write [" + a.host + "]" : ""));
    }
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), a.port);
    if (port.empty() || failed != std::errc() || end != port.data() + port.size())
        refuse(fmt::format("\"{}\" is not a port (1 to 65535)", port));
    return a;
}

void check_http_host(const std::string& name) {
    constexpr std::size_t most = 253;  // RFC 1035
    const bool fits = std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
    });
    if (name.empty() || name.size() > most || !fits)
        throw config_error(
            fmt::format("--http-host {}: expected the name of this machine in the address of the web UI, "
                        "without a port, e.g. gpu7.example.org",
                        name));
}

bool is_host_address(const std::string& text) noexcept { return number_of(text) != 0; }

bool is_private_address(const std::string& text) noexcept {
    const u32 a = number_of(text);
    const auto within = [a](u32 net, unsigned bits) { return (a >> (32 - bits)) == (net >> (32 - bits)); };
    return within(0x0A000000, 8) || within(0xAC100000, 12) || within(0xC0A80000, 16) ||
           within(0x64400000, 10) || within(0xA9FE0000, 16) || within(0x7F000000, 8);
}

}  // namespace carousel
