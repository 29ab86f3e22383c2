#pragma once
#include <string>
#include <vector>

namespace carousel::supervisor {

/// Splits a command line into words as a shell would: blanks, '...', "..." and backslashes; no expansion. If
/// the text ends in the middle of a word, `missing` is set to the expected text.
[[nodiscard]] std::vector<std::string> shell_words(const std::string& text, std::string& missing);

}  // namespace carousel::supervisor
