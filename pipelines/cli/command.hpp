#pragma once
// A command of `carousel`: each has a file of its own in this folder, with its options, what Tab offers for
// their values, and its run. commands.hpp lists them.
//
// CLI11 is seen by those files, by options.cpp, which has the options that several share, and by
// command_line.cpp and complete.cpp, which know no command by name.

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/complete.hpp"
#include "core/errors.hpp"

namespace carousel::supervisor {

/// What every command knows of its command line.
struct common_words {
    std::vector<std::string> words;  ///< as it was given, for reports and for those who start it once more
    bool json = false;               ///< --json, where there is one: then complaints are JSON, too
};

/// Where a command puts its options.
struct command_parts {
    CLI::App& app;         ///< of this command alone
    common_words& common;  ///< filled by the parser
    completers& offers;    ///< what Tab offers; an option that isn't in it offers nothing
};

/// The run of a command, behind the parser: an exit code. Throws carousel::error.
using command_action = std::function<int(const common_words&, const cli_environment&)>;

struct command {
    const char* name;
    const char* text;  ///< its line in `carousel --help`
    /// Adds its options, and returns what it does with them.
    command_action (*add)(const command_parts& p);
    /// Looks at the words behind its name before the parser does. Throws config_error where it has a better
    /// sentence.
    void (*preparse)(const std::vector<std::string>& words) = nullptr;
};

}  // namespace carousel::supervisor
