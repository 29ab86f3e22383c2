#include "core/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/io.hpp"

namespace carousel {

using nlohmann::json;

namespace {

/// True if brackets outside of strings nest deeper than `limit`. The count is exact up to the first character
/// that is not JSON, where the parser stops.
bool nests_deeper(std::string_view text, u32 limit) noexcept {
    u32 depth = 0;
    bool in_string = false;
    for (std::size_t k = 0; k < text.size(); ++k) {
        const char c = text[k];
        if (in_string) {
            if (c == '\\')
                ++k;  // skips the next character, because it is escaped and does not end the string
            else
                in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > limit) return true;
        } else if ((c == ']' || c == '}') && depth > 0) {
            --depth;
        }
    }
    return false;
}

/// Returns "" if the text is within the limits.
std::string excess_of(std::string_view text, const json_limits& limits) {
    if (text.size() > limits.bytes)
        return fmt::format("JSON text of {} bytes; at most {} are accepted", text.size(), limits.bytes);
    if (nests_deeper(text, limits.depth))
        return fmt::format("JSON text with more than {} levels of arrays and objects", limits.depth);
    return "";
}

}  // namespace

json parse_json(std::string_view text, const json_limits& limits) {
    if (const std::string why = excess_of(text, limits); !why.empty()) throw json_limit_error(why);
    return json::parse(text);
}

json parse_json_or_discard(std::string_view text, const json_limits& limits) {
    if (!excess_of(text, limits).empty()) return json(json::value_t::discarded);
    return json::parse(text, nullptr, false);
}

json read_json_file(const std::string& path) {
    const auto text = read_file(path, json_channel::document.bytes);
    return text ? parse_json_or_discard(*text, json_channel::document) : json(json::value_t::discarded);
}

u32 json_depth(const json& value) {
    if (!value.is_structured()) return 0;
    u32 deepest = 0;
    for (const json& each : value) deepest = std::max(deepest, json_depth(each));
    return deepest + 1;
}

}  // namespace carousel
