#pragma once
// Template project for a user's own stage: one of the example projects of stages/examples, which are embedded
// in this program, under another name.

#include <string>
#include <string_view>
#include <vector>

namespace carousel::supervisor {

struct project_file {
    std::string path;  ///< relative to the project's folder
    std::string text;
};

/// All example projects; the first folder of a path is the example's name.
[[nodiscard]] const std::vector<project_file>& example_files();

/// Returns `text` with the word `example` replaced by `name`. If the word is next to an underscore (part of a
/// C++ name) or names a Python module (example.py), `name` is first converted to a C++ name.
[[nodiscard]] std::string renamed(std::string_view text, std::string_view example, std::string_view name);

/// Returns the example project renamed to `name`. Throws config_error if the project cannot have that name.
[[nodiscard]] std::vector<project_file> project_from(const std::string& example, const std::string& name);

/// Returns the commands between the fences of the project's README, one per line.
[[nodiscard]] std::vector<std::string> commands_of(const std::vector<project_file>& project);

/// Creates `folder` and writes the files into it. Throws config_error if the folder is not empty, and
/// output_error if the folder or a file cannot be written.
void write_project(const std::vector<project_file>& project, const std::string& folder);

// Names that a stage's Python file cannot have.

/// Returns "a word of Python" or "a module of Python" if `name` is taken: `from NAME import NAME` would be
/// invalid Python, or `import NAME` in any module would find the stage. Returns null if the name is free.
[[nodiscard]] const char* reserved_in_python(std::string_view name) noexcept;

}  // namespace carousel::supervisor
