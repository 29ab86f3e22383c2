#pragma once
// What users type: paths, patterns of file names, and mistyped words.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel {

// Paths as given by a user: relative to the working directory, or as a pattern of file names.

/// Throws config_error if the working directory was deleted or can't be read.
[[nodiscard]] std::filesystem::path working_directory();
/// Returns `path` as an absolute path. A relative path may throw the errors of
/// working_directory().
[[nodiscard]] std::filesystem::path absolute_path(const std::filesystem::path& path);

/// Returns `text` with its percent signs escaped for a pattern of names ("frame_%05d.png"), in which "%%" is
/// a percent sign. Only the part that the user wrote is a pattern, so a folder that a program prepends to
/// this part must be converted by this function.
[[nodiscard]] std::string as_pattern(std::string_view text);
/// The text of a pattern without a number placeholder; nothing if the pattern has one.
[[nodiscard]] std::optional<std::string> literal_text(std::string_view pattern);
/// Returns the pattern as an absolute path without "." and ".."; percent signs of the working directory are
/// escaped.
[[nodiscard]] std::string absolute_pattern(const std::string& pattern);

// "Did you mean": finds the candidate that a mistyped word most probably stands for.

/// Number of edits that turn `a` into `b`: insert, delete or replace a character, or swap two adjacent ones
/// (optimal string alignment). Takes O(|a| |b|) time, so the caller must limit the length of the words.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the new name of `word` if it was renamed and that name is a candidate; otherwise the candidate
/// nearest to `word` regardless of case, if the distance is at most a third of the word's length (at least
/// one edit), or a candidate that begins with the word (3 characters or more). Returns "" if there is none,
/// and the first of several equally near candidates.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean \"X\"?" for the end of a message, or "" if no candidate is near.
[[nodiscard]] std::string did_you_mean_clause(std::string_view word,
                                              const std::vector<std::string>& candidates);

}  // namespace carousel
