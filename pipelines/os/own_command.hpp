#pragma once
// How the user calls `carousel`, for hints that can be typed as they stand.

#include <string>

namespace carousel::supervisor {

/// "carousel" where PATH finds this very program, else a path that works from the working directory:
/// "build/release/carousel",
/// "./carousel", or the whole path. Quoted for a shell where it has to be.
[[nodiscard]] std::string own_command();

/// The same from another folder (absolute path).
[[nodiscard]] std::string own_command_from(const std::string& working_folder);

/// The same for any program (absolute path), folder (absolute path) and value of PATH.
[[nodiscard]] std::string command_for(const std::string& program, const std::string& working_folder,
                                      const std::string& path);

/// The text as one word of a shell: itself, or in single quotes.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace carousel::supervisor
