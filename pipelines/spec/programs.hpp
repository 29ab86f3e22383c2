#pragma once
// The programs of stages: Carousel's own programs and Python files; also splits command lines into words.

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "core/executable_path.hpp"

namespace carousel::supervisor {

// Finds Carousel programs in the folder of the running program; the first launch of a source tree builds only
// the programs that the launched pipeline needs.

/// Advice for a part that is missing in a build with CAROUSEL_EXTRAS=OFF.
inline constexpr const char* how_to_get_extras = "configure with -DCAROUSEL_EXTRAS=ON";

/// The command that builds `program` in `folder`; "": `folder` is not a build folder, or its programs.txt has
/// no stage of that name.
[[nodiscard]] std::string command_to_build(const std::string& program, const std::string& folder);

/// Returns true for a build folder that was configured with CAROUSEL_EXTRAS=OFF.
[[nodiscard]] bool lacks_extras(const std::string& folder);

/// Returns the path of `name` in `folder`. If the program is missing, throws config_error with the command
/// that builds it, preceded by `takes`, a sentence about the prerequisites.
[[nodiscard]] std::string program_of_ours(const std::string& name, const std::string& folder,
                                          const std::string& takes = "");

/// Flushes `out`, then replaces this process by the program `words`; the first word is a path or a name in
/// PATH. Throws config_error if it cannot be started.
[[noreturn]] void exec_program(std::vector<std::string> words, std::ostream& out);

// Stages in Python: run = "file.py", or "file.py:NAME" for one of several stages of the file. The program of
// such a stage is the file, followed by :NAME if the key has it; the supervisor starts an
// interpreter with carousel_stage.py, which is in the module's folder: python/ of the build folder, or of the
// installation. The interpreter is the one that the stage's key `python` names; without that key it is
// `python3`, so that an active virtual environment is used; CAROUSEL_PYTHON names another one.

[[nodiscard]] bool is_python(std::string_view program) noexcept;

/// Returns the path of a stage in Python without :NAME; returns any other program unchanged.
[[nodiscard]] std::string_view python_file(std::string_view program) noexcept;

/// The folder of carousel_stage.py and the package, for PYTHONPATH. "": not built.
[[nodiscard]] std::string python_folder();

/// The words of the command line that start a stage's program: the program itself, or an interpreter,
/// carousel_stage.py and the file. `python`: path of the interpreter; "": the default one. If the interpreter
/// or the module is missing, throws a config_error that states a remedy.
[[nodiscard]] std::vector<std::string> command_of(const std::string& program, const std::string& python);

/// Splits a command line into words as a shell would: blanks, '...', "..." and backslashes; no expansion. If
/// the text ends in the middle of a word, `missing` is set to the expected text.
[[nodiscard]] std::vector<std::string> shell_words(const std::string& text, std::string& missing);

}  // namespace carousel::supervisor
