#pragma once
// The command line of `carousel`. Exit codes: 0 success; 1 a required stage failed; 2 usage or configuration;
// 3 no device, or a machine that cannot run Carousel; 70 and above: see core/errors.hpp. A usage error is one
// sentence on stderr (with --json: an object on stdout).

#include <ostream>
#include <string>
#include <vector>

#include "runs/clean.hpp"
#include "supervisor/engine/run.hpp"

namespace carousel::supervisor {

/// The command line's environment; tests pass their own.
struct cli_environment {
    std::ostream& out;
    std::ostream& err;
    bool out_is_terminal = false, err_is_terminal = false;  ///< the stream is a terminal that understands
                                                            ///< escape sequences
    int (*run)(const pipeline&, const run_options&) = nullptr;
    clean_places places = {};  ///< of `clean`
    std::size_t columns = 0;   ///< width of the terminal at `out`; 0: `out` is not a terminal
};

/// Runs the command line `words` (without the program's name) and returns its exit code. Never throws; prints
/// errors.
int cli_main(const std::vector<std::string>& words, const cli_environment& env) noexcept;

/// Returns true if a stream gets colours, which means that it is a terminal that understands colours, and
/// that neither --no-color nor NO_COLOR is given.
[[nodiscard]] bool wants_color(bool terminal, bool no_color) noexcept;

}  // namespace carousel::supervisor
