#pragma once
// Stages in Python: run = "name.py". The program of such a stage is the file; the supervisor starts an
// interpreter with carousel_stage.py, which is in the module's folder: python/ of the build folder, or of the
// installation. The interpreter is `python3`, so that an active virtual environment is used; CAROUSEL_PYTHON
// names another one.

#include <string>
#include <string_view>
#include <vector>

namespace carousel::supervisor {

[[nodiscard]] bool is_python(std::string_view program) noexcept;

/// The folder of carousel_stage.py and the package, for PYTHONPATH. "": not built.
[[nodiscard]] std::string python_folder();

/// The words of the command line that start a stage's program: the program itself, or an interpreter,
/// carousel_stage.py and the file. Throws config_error if the interpreter or the module is missing, with what
/// to do.
[[nodiscard]] std::vector<std::string> command_of(const std::string& program);

}  // namespace carousel::supervisor
