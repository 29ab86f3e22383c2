#pragma once
#include <string>
#include <vector>

namespace carousel::supervisor {

/// Words of a command line, as a shell would split them: blanks, '...', "..." and backslashes; no expansion.
/// Where the text ends in the middle of a word, `missing` says what was expected.
[[nodiscard]] std::vector<std::string> shell_words(const std::string& text, std::string& missing);

}  // namespace carousel::supervisor
