#pragma once
// The exit of a viewer program whose command line has an error or requests the help or the version. Includes
// CLI11.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "core/process.hpp"
#include "core/user_input.hpp"

namespace carousel::viewer {

/// Prints the help, the version or the error. If an option was renamed or mistyped, also prints its current
/// name. Returns the program's exit code.
inline int usage_exit_code(const CLI::App& app, const CLI::ParseError& e) {
    const int code = app.exit(e);
    if (code == 0) return after_output(code);
    std::vector<std::string> options;
    for (const CLI::Option* o : app.get_options())
        for (const std::string& name : o->get_lnames()) options.push_back("--" + name);
    for (const std::string& word : app.remaining())
        if (const std::string option = did_you_mean(word.substr(0, word.find('=')), options); !option.empty())
            std::fprintf(stderr, "Unknown option \"%s\"; did you mean \"%s\"?\n", word.c_str(),
                         option.c_str());
    return exit_code::usage;
}

}  // namespace carousel::viewer
