#include "spec/shell_words.hpp"

namespace carousel::supervisor {

std::vector<std::string> shell_words(const std::string& text, std::string& missing) {
    std::vector<std::string> words;
    bool inside = false;
    char quote = 0;
    for (std::size_t k = 0; k < text.size(); ++k) {
        const char c = text[k];
        if (quote == 0 && (c == ' ' || c == '\t')) {
            inside = false;
            continue;
        }
        if (!inside) words.emplace_back();
        inside = true;
        if (c == '\\' && quote != '\'') {
            if (k + 1 == text.size()) {
                missing = "a character after the last backslash";
                return words;
            }
            words.back() += text[++k];
        } else if (quote == 0 && (c == '"' || c == '\'')) {
            quote = c;
        } else if (quote != 0 && c == quote) {
            quote = 0;
        } else {
            words.back() += c;
        }
    }
    if (quote != 0) missing = "a closing quote";
    return words;
}

}  // namespace carousel::supervisor
