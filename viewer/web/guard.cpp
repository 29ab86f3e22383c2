#include "viewer/web/guard.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace carousel::viewer::web {
namespace {

std::string lower(std::string_view text) {
    std::string out;
    for (const unsigned char c : text) out += static_cast<char>(std::tolower(c));
    return out;
}

}  // namespace

bool is_own_host(std::string_view host) {
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
    return ::gethostname(own.data(), own.size() - 1) == 0 && own[0] != '\0' && name == lower(own.data());
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
