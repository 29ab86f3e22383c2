#pragma once
// The parts of the command line's parser; command_line.cpp puts them together. Included where CLI11 is used, nowhere else.

#include <CLI/CLI.hpp>
#include <string>

#include "cli/cli.hpp"

namespace carousel::supervisor {

/// Seconds as they were written; command_line.cpp reads them.
struct timing_texts {
    std::string wait, seconds, timeout, interval;
};

/// A subcommand that talks to a running pipeline: with -p and --wait.
CLI::App* add_client(CLI::App& app, cli_arguments& a, timing_texts& t, const std::string& name, const std::string& text);

/// logs, top, graph, completion
void add_watching(CLI::App& app, cli_arguments& a, timing_texts& t);

/// new
void add_new(CLI::App& app, cli_arguments& a);

}  // namespace carousel::supervisor
