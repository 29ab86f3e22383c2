#pragma once
// What Tab offers. The scripts of `carousel completion SHELL` ask the program itself, `carousel __complete
// WORD... PARTIAL`, so that all shells know the same, always that of the program at hand. Commands and
// options are those that the parser has; what an option's value may be says its completer, which its command
// has registered (completers.hpp has the usual ones).

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

/// Where the cursor stands.
struct completion_request {
    const std::vector<std::string>& words;  ///< whole ones before it, the command's name first
    const std::string& partial;             ///< begun; may be empty
};
/// Candidates; those that don't begin with the partial word are left out later.
using completer = std::function<std::vector<std::string>(const completion_request&)>;
using completers = std::map<const CLI::Option*, completer>;

/// Candidates for the last of `words` (may be empty), the words behind the program's name. Never throws; a
/// pipeline that does not answer at once offers nothing.
[[nodiscard]] std::vector<std::string> completions(const CLI::App& app, const completers& offers,
                                                   const std::vector<std::string>& words) noexcept;

}  // namespace carousel::supervisor
