#pragma once
// The command line of `carousel`. Exit codes: 0; 1 a required stage failed; 2 usage or configuration; 3 no
// device, or a machine that can't run Carousel; 70 and up see core/errors.hpp. Usage errors are one sentence
// on stderr (with --json: an object on stdout).

#include <ostream>
#include <string>
#include <vector>

#include "runs/clean.hpp"
#include "supervisor/engine/run.hpp"

namespace carousel::supervisor {

/// What the command line works with; tests bring their own.
struct cli_environment {
    std::ostream& out;
    std::ostream& err;
    bool out_is_terminal = false, err_is_terminal = false;  ///< of those that understand escape sequences
    int (*run)(const pipeline&, const run_options&) = nullptr;
    clean_places places = {};  ///< for `clean`
    std::size_t columns = 0;   ///< of the terminal that `out` is; 0: it is none
};

/// `words` without the program's name. Never throws; says what is wrong and returns the exit code.
int cli_main(const std::vector<std::string>& words, const cli_environment& env) noexcept;

/// Colours are wanted on a stream: a terminal that understands them, no --no-color, no NO_COLOR.
[[nodiscard]] bool wants_color(bool terminal, bool no_color) noexcept;

}  // namespace carousel::supervisor
