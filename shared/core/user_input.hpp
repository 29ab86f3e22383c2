#pragma once
// What users type: paths, patterns of file names, and mistyped words.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel {

// Paths that a user has given: a path may be relative to the working directory, or a pattern of file names.

/// Throws config_error if the working directory was deleted or can't be read.
[[nodiscard]] std::filesystem::path working_directory();
/// Returns `path` as an absolute path. For a relative path, throws the same errors as working_directory().
[[nodiscard]] std::filesystem::path absolute_path(const std::filesystem::path& path);

/// Returns `text` with its percent signs escaped for a pattern of names ("frame_%05d.png"), in which "%%" is
/// a percent sign. If a program prepends a folder to a pattern that the user wrote, it must convert the
/// folder with this function, because the folder is not a pattern.
[[nodiscard]] std::string as_pattern(std::string_view text);
/// If the pattern has no placeholder for a number, returns the text for which the pattern stands. If it has a
/// placeholder, returns nothing.
[[nodiscard]] std::optional<std::string> literal_text(std::string_view pattern);
/// Returns the pattern as an absolute path without "." and ".."; percent signs of the working directory are
/// escaped.
[[nodiscard]] std::string absolute_pattern(const std::string& pattern);

// For "did you mean": finds the candidate that a user who mistyped a word most probably meant.

/// Number of edits that change `a` into `b`. An edit inserts, deletes or replaces a character, or swaps two
/// adjacent ones (optimal string alignment). Takes O(|a| |b|) time, so the caller must limit the length of
/// the words.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the candidate that the user probably meant, or "" if there is none. If `word` was renamed and its
/// new name is a candidate, this is the new name. If not, it is the candidate nearest to `word` (regardless
/// of case), provided that the distance is one edit or at most a third of the word's length. If no candidate
/// is that near, and `word` has 3 characters or more, it is a candidate that begins with `word`. Of several
/// equally near candidates, the first is returned.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// Returns "; did you mean \"X\"?" for the end of a message, or "" if no candidate is near.
[[nodiscard]] std::string did_you_mean_clause(std::string_view word,
                                              const std::vector<std::string>& candidates);

}  // namespace carousel
