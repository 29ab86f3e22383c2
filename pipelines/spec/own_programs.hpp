#pragma once
// Finds Carousel programs in the folder of this one; the first launch of a source tree builds only the
// programs that its pipeline needs.

#include <iosfwd>
#include <string>
#include <vector>

namespace carousel::supervisor {

/// Advice for a part that is missing in a build with CAROUSEL_EXTRAS=OFF.
inline constexpr const char* how_to_get_extras = "configure with -DCAROUSEL_EXTRAS=ON";

/// Folder of the running executable.
[[nodiscard]] std::string executable_folder();

/// The command that builds `program` in `folder`; "": `folder` is not a build folder, or its programs.txt has
/// no stage of that name.
[[nodiscard]] std::string command_to_build(const std::string& program, const std::string& folder);

/// Returns true for a build folder that was configured with CAROUSEL_EXTRAS=OFF.
[[nodiscard]] bool lacks_extras(const std::string& folder);

/// Returns the path of `name` in `folder`. If the program is missing, throws config_error with the command
/// that builds it, preceded by `takes`, a sentence about the prerequisites.
[[nodiscard]] std::string program_of_ours(const std::string& name, const std::string& folder,
                                          const std::string& takes = "");

/// Replaces this process by the program `words`, whose first word is a path or a name in PATH, after flushing
/// `out`. Throws config_error if it cannot be started.
[[noreturn]] void exec_program(std::vector<std::string> words, std::ostream& out);

}  // namespace carousel::supervisor
