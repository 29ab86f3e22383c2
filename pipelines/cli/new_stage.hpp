#pragma once
// A project with a stage of one's own, to begin with. It is one of the example
// projects of stages/examples, whose texts this program carries, under another name.

#include <string>
#include <string_view>
#include <vector>

namespace carousel::supervisor {

struct project_file {
    std::string path;  ///< below the project's folder
    std::string text;
};

/// All example projects: the first folder of a path is the example's name.
[[nodiscard]] const std::vector<project_file>& example_files();

/// `text` with the word `example` as `name`. Beside an underscore it is part of a C++ name: there `name`
/// comes as one, too, and so it does in a file NAME.py, which is imported.
[[nodiscard]] std::string renamed(std::string_view text, std::string_view example, std::string_view name);

/// The example project under that name. Throws config_error for a name that it can't have.
[[nodiscard]] std::vector<project_file> project_from(const std::string& example, const std::string& name);

/// The commands between the fences of a project's README, a line each.
[[nodiscard]] std::vector<std::string> commands_of(const std::vector<project_file>& project);

/// Writes the files into `folder`, which is made. Throws config_error when something is in it, output_error.
void write_project(const std::vector<project_file>& project, const std::string& folder);

}  // namespace carousel::supervisor
