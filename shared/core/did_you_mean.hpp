#pragma once
// "Did you mean": finds the candidate that a mistyped word most probably stands for.

#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel {

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
