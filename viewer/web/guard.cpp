#include "viewer/web/guard.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace carousel::viewer::web {
namespace {

std::string lower(std::string_view text) {
    std::string out;
    for (const unsigned char c : text) out += static_cast<char>(std::tolower(c));
    return out;
}

}  // namespace

bool is_own_host(std::string_view host, const std::vector<std::string>& names) {
    std::string name = lower(host);
    if (name.starts_with('[')) {
        const auto end = name.find(']');
        if (end == std::string::npos) return false;
        in6_addr a{};
        return ::inet_pton(AF_INET6, name.substr(1, end - 1).c_str(), &a) == 1;
    }
    if (const auto colon = name.find(':'); colon != std::string::npos) name.resize(colon);
    in_addr a{};
    if (name == "localhost" || ::inet_pton(AF_INET, name.c_str(), &a) == 1) return true;
    std::array<char, 256> own{};
    if (::gethostname(own.data(), own.size() - 1) == 0 && own[0] != '\0' && name == lower(own.data()))
        return true;
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& known) { return name == lower(known); });
}

bool is_open_to_any_host(std::string_view path) noexcept { return path == "/metrics" || path == "/healthz"; }

std::optional<request_target> split_target(std::string_view target) noexcept {
    constexpr std::string_view scheme = "http://";
    request_target out;
    if (target.size() > scheme.size() && lower(target.substr(0, scheme.size())) == scheme) {
        target.remove_prefix(scheme.size());
        out.authority = target.substr(0, target.find_first_of("/?"));
        if (out.authority.empty()) return std::nullopt;
        target.remove_prefix(out.authority.size());
    } else if (!target.starts_with('/')) {
        return std::nullopt;
    }
    const auto mark = target.find('?');
    out.path = target.substr(0, mark);
    if (out.path.empty()) out.path = "/";
    if (mark != std::string_view::npos) out.query = target.substr(mark + 1);
    return out;
}

std::string_view query_value(std::string_view query, std::string_view key) noexcept {
    while (!query.empty()) {
        const auto end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=')
            return pair.substr(key.size() + 1);
        query.remove_prefix(std::min(end + 1, query.size()));
    }
    return {};
}

}  // namespace carousel::viewer::web
