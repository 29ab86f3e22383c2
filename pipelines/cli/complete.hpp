#pragma once
// Shell completion. The scripts of `carousel completion SHELL` call the program itself, `carousel __complete
// WORD... PARTIAL`, so that all shells offer the same words, and always those of the installed version.
// Commands and options come from the parser; the values of an option come from the completer that its command
// has registered (completers.hpp has the common ones).

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace carousel::supervisor {

inline constexpr const char* complete_command = "__complete";

/// The words up to the cursor.
struct completion_request {
    const std::vector<std::string>& words;  ///< complete words before the cursor, the command's name first
    const std::string& partial;             ///< the word being typed; may be empty
};
/// Returns candidates; those that do not begin with the partial word are removed later.
using completer = std::function<std::vector<std::string>(const completion_request&)>;
using completers = std::map<const CLI::Option*, completer>;

/// Returns candidates for the last of `words` (may be empty); `words` are those after the program's name.
/// Never throws; a pipeline that does not reply immediately contributes no candidates.
[[nodiscard]] std::vector<std::string> completions(const CLI::App& app, const completers& offers,
                                                   const std::vector<std::string>& words) noexcept;

}  // namespace carousel::supervisor
