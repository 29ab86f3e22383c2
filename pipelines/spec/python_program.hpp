#pragma once
// Stages in Python: run = "name.py". Their program is the file; what is started is an interpreter with
// carousel_stage.py, which stands beside the module: in python/ of the build folder, or in the installation.
// The interpreter is `python3`, so that one of a virtual environment is taken where it is active;
// CAROUSEL_PYTHON names another.

#include <string>
#include <string_view>
#include <vector>

namespace carousel::supervisor {

[[nodiscard]] bool is_python(std::string_view program) noexcept;

/// Where carousel_stage.py and the package lie: for PYTHONPATH. "": not built.
[[nodiscard]] std::string python_folder();

/// The words that start a stage's program, before its own: itself, or an interpreter, carousel_stage.py and
/// the file. Throws config_error: no interpreter, no module, each with what to do.
[[nodiscard]] std::vector<std::string> command_of(const std::string& program);

}  // namespace carousel::supervisor
