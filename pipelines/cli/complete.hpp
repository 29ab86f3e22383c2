#pragma once
// Shell completion. The scripts of `carousel completion SHELL` call the program itself, `carousel __complete
// WORD... PARTIAL`, so that all shells offer the same words, which are always the words of the installed
// version. Commands and options come from the parser; the values of an option come from the completer that
// its command has registered (the completers below are used by several commands).

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

/// The words of a command line up to the cursor.
struct completion_request {
    const std::vector<std::string>& words;  ///< complete words before the cursor, the command's name first
    const std::string& partial;             ///< the word being typed; may be empty
};
/// Returns candidates. Candidates that do not begin with the partial word are removed later.
using completer = std::function<std::vector<std::string>(const completion_request&)>;
using completers = std::map<const CLI::Option*, completer>;

/// Returns candidates for the last of `words` (may be empty); `words` are those after the program's name.
/// Never throws; a pipeline that does not reply immediately contributes no candidates.
[[nodiscard]] std::vector<std::string> completions(const CLI::App& app, const completers& offers,
                                                   const std::vector<std::string>& words) noexcept;

// Completers for values: fixed words, files, and names from a running pipeline.

/// Offers a fixed list of words.
[[nodiscard]] completer offer(std::vector<std::string> words);
/// Offers folders (with a slash at the end) and files whose name ends with one of `endings`; the ending ""
/// permits any file.
[[nodiscard]] completer offer_files(std::vector<std::string> endings);
/// Offers folders only.
[[nodiscard]] completer offer_folders();

[[nodiscard]] std::vector<std::string> running_pipelines(const completion_request& request);
/// Offers the running pipelines and the spaces of this user, except a run's own space that no process has
/// opened.
[[nodiscard]] std::vector<std::string> pipelines_and_spaces(const completion_request& request);
/// Offers the stages of the pipeline that -p names (without -p, of the only running pipeline). If a stage has
/// several instances, each instance is offered, too. Stages that are already on the command line are left
/// out.
[[nodiscard]] std::vector<std::string> running_stages(const completion_request& request);
/// Offers parameters in the form that `carousel set` reads: "exposure=". For a choice or a flag, offers one
/// entry per value.
[[nodiscard]] std::vector<std::string> running_parameters(const completion_request& request);

}  // namespace carousel::supervisor
