#pragma once
// The command by which the user can call `carousel`, for hints that can be copied as printed.

#include <string>

namespace carousel::supervisor {

/// Returns "carousel" if PATH finds this program, else a path that works from the working directory
/// ("build/release/carousel", "./carousel", or the absolute path). The same for a user in another working
/// directory (absolute path).
[[nodiscard]] std::string own_command();

/// The same from another working directory (absolute path).
[[nodiscard]] std::string own_command_from(const std::string& working_folder);

/// The same for any program (absolute path), folder (absolute path) and value of PATH.
[[nodiscard]] std::string command_for(const std::string& program, const std::string& working_folder,
                                      const std::string& path);

/// Returns the text as one shell word: unchanged, or in single quotes.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace carousel::supervisor
