#include "viewer/panels/event_filter.hpp"

#include <algorithm>

namespace carousel::viewer {
namespace {

// The C locale's rules, because a locale of the user must not change the result.
char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool contains(std::string_view text, std::string_view word) noexcept {
    return std::search(text.begin(), text.end(), word.begin(), word.end(),
                       [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

}  // namespace

bool event_matches(std::string_view query, std::string_view stage, std::string_view text) noexcept {
    while (!query.empty()) {
        const std::size_t end = query.find(' ');
        const std::string_view word = query.substr(0, end);
        query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
        if (!word.empty() && !contains(text, word) && !contains(stage, word)) return false;
    }
    return true;
}

}  // namespace carousel::viewer
