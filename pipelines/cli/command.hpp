#pragma once
// A command of `carousel`. Each command has its own file, in this folder or in the folder of an extra, with
// its options, the completions of their values, and its action: `extern const command NAME_command{...};`.
// CMake lists the names (carousel_commands() in CMakeLists.txt).
// CLI11 is visible to those files, to options.cpp (options that several commands share), and to
// command_line.cpp and complete.cpp, which refer to no command by name.

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/complete.hpp"
#include "core/errors.hpp"

namespace carousel::supervisor {

// The commands of `carousel`, in the order of its help: first the commands of the core, then those of the
// extras. CMake makes the table (pipelines/CMakeLists.txt).

struct command;

[[nodiscard]] std::span<const command* const> all_commands() noexcept;
/// Names of the commands that this build lacks (CAROUSEL_EXTRAS=OFF).
[[nodiscard]] std::span<const char* const> absent_commands() noexcept;

/// The part of the command line that every command receives.
struct common_words {
    /// the words of the command line, for reports and for commands that start the program again
    std::vector<std::string> words;
    bool json = false;  ///< --json, if the command has this option: errors are also printed as JSON
};

/// The places where a command registers its options and their completions.
struct command_parts {
    CLI::App& app;         ///< of this command only
    common_words& common;  ///< filled by the parser
    completers& offers;    ///< completions of option values; an option without an entry has no completions
};

/// The action that a command performs after parsing; returns an exit code. Throws carousel::error.
using command_action = std::function<int(const common_words&, const cli_environment&)>;

struct command {
    const char* name;
    const char* text;  ///< the command's line in `carousel --help`
    /// Adds the command's options and returns its action.
    command_action (*add)(const command_parts& p);
    /// Checks the words after the command's name before the parser reads them. Throws config_error in cases
    /// where a message of this command is better than the parser's message.
    void (*preparse)(const std::vector<std::string>& words) = nullptr;
    const char* examples = "";  ///< the command's lines among the examples of `carousel --help`
};

}  // namespace carousel::supervisor
