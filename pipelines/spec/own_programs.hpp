#pragma once
// Programs of ours that stand beside this one: a first launch builds those alone that its pipeline needs.

#include <iosfwd>
#include <string>
#include <vector>

namespace carousel::supervisor {

/// Folder of the running executable.
[[nodiscard]] std::string executable_folder();

/// The command that builds `program` in `folder`; "" where that is no build folder, or lists no stage of that
/// name in its programs.txt.
[[nodiscard]] std::string command_to_build(const std::string& program, const std::string& folder);

/// Path of `name` in `folder`. Throws config_error with the command that builds it, and before that `takes`:
/// what has to be there first, as a sentence.
[[nodiscard]] std::string program_of_ours(const std::string& name, const std::string& folder,
                                          const std::string& takes = "");

/// This process becomes `words`, whose first is a path or a name in PATH. `out` is flushed before. Throws
/// config_error if it can't be started.
[[noreturn]] void exec_program(std::vector<std::string> words, std::ostream& out);

}  // namespace carousel::supervisor
