#include "spec/toml_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/json_text.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {
namespace {

/// Returns the number of characters of the string that begins at the front of `text`, its quotes included.
std::size_t length_of_string(std::string_view text) noexcept {
    const char quote = text.front();
    const std::string_view three = quote == '"' ? R"(""")" : "'''";
    const bool many_lines = text.starts_with(three);
    for (std::size_t k = many_lines ? 3 : 1; k < text.size(); ++k) {
        if (text[k] == '\\' && quote == '"')
            ++k;
        else if (many_lines && text.substr(k).starts_with(three))
            return k + 3;
        else if (!many_lines && (text[k] == quote || text[k] == '\n'))
            return k + 1;
    }
    return text.size();
}

bool separates_keys(char c) noexcept {
    return std::string_view("=,[]{}\n").find(c) != std::string_view::npos;
}

}  // namespace

// TOML forbids control characters, and the library assumes in some places that there are none. A key "a.b.c"
// makes a table per part; the library destroys them recursively, so a key of many thousand parts overflows
// the stack. The dots of one key are counted here: all dots between two separators, outside of strings and
// comments.
void check_toml_text(const std::string& text, const std::string& file) {
    u32 line = 1, column = 1, dots = 0;
    std::size_t opaque_until = 0;  // the end of the string or comment that is being skipped
    for (std::size_t k = 0; k < text.size(); ++k) {
        const char c = text[k];
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7F)
            refuse({file, line, column, ""},
                   fmt::format("not TOML: found the control character 0x{:02x}", byte));
        if (k >= opaque_until) {
            if (c == '"' || c == '\'') opaque_until = k + length_of_string(std::string_view(text).substr(k));
            if (c == '#') opaque_until = std::min(text.find('\n', k), text.size());
            if (separates_keys(c)) dots = 0;
            if (c == '.' && ++dots >= max_settings_depth)
                refuse({file, line, column, ""},
                       fmt::format("a key of more than {} parts", max_settings_depth));
        }
        column = c == '\n' ? 1 : column + 1;
        line += c == '\n' ? 1U : 0U;
    }
}

}  // namespace carousel::supervisor
