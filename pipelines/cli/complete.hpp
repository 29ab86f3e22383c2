#pragma once
// What Tab offers. The scripts of `carousel completion SHELL` ask the program itself, `carousel __complete WORD... PARTIAL`, so that
// all shells know the same, always that of the program at hand.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace carousel::supervisor {

inline constexpr const char* complete_command = "__complete";

/// Candidates for the last of `words` (may be empty), the words behind the program's name. Never throws; a pipeline that does not
/// answer at once offers nothing.
[[nodiscard]] std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words) noexcept;

}  // namespace carousel::supervisor
