#include "stages/geometry/gltf_uri.hpp"

#include "core/types.hpp"

namespace carousel::stages {
namespace {

/// Six bits of a base64 character, or -1.
int six_bits(char c) noexcept {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : (c == '/' ? 63 : -1);
}

int hexadecimal(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

bool is_data_uri(std::string_view uri) noexcept { return uri.starts_with("data:"); }

std::optional<std::vector<std::byte>> decode_data_uri(std::string_view uri) {
    const auto comma = uri.find(',');
    if (comma == std::string_view::npos || !uri.substr(0, comma).ends_with(";base64")) {
        return std::nullopt;
    }
    std::string_view text = uri.substr(comma + 1);
    for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) {
        text.remove_suffix(1);
    }
    if (text.size() % 4 == 1) {
        return std::nullopt;
    }
    std::vector<std::byte> out;
    out.reserve(text.size() / 4 * 3 + 2);
    u32 bits = 0;
    int bit_count = 0;
    for (const char c : text) {
        const int six = six_bits(c);
        if (six < 0) {
            return std::nullopt;
        }
        bits = bits << 6U | static_cast<u32>(six);
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            out.push_back(static_cast<std::byte>(bits >> bit_count));
            bits &= (1U << bit_count) - 1U;
        }
    }
    return out;
}

std::string decode_percent(std::string_view uri) {
    std::string out;
    for (std::size_t i = 0; i < uri.size(); ++i) {
        if (uri[i] == '%' && i + 2 < uri.size() && hexadecimal(uri[i + 1]) >= 0 &&
            hexadecimal(uri[i + 2]) >= 0) {
            out += static_cast<char>(hexadecimal(uri[i + 1]) * 16 + hexadecimal(uri[i + 2]));
            i += 2;
        } else {
            out += uri[i];
        }
    }
    return out;
}

}  // namespace carousel::stages
