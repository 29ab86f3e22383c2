#pragma once
// "Did you mean": the candidate that a mistyped word most probably stands for.

#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel {

/// Edits that turn `a` into `b`: insert, delete or replace a character, or swap two neighbours (optimal
/// string alignment). O(|a| |b|) time, so that words of unbounded length are the caller's to refuse.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The new name of `word` if it was renamed and that name is a candidate; otherwise the candidate nearest to
/// `word` regardless of case, if it is near enough to be meant: at most a third of the word's length (and at
/// least one edit) away, or begun by the word (3 letters or more). "" when none is. The first of equals wins.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean \"X\"?", or "" when no candidate is near: to be put behind a message.
[[nodiscard]] std::string did_you_mean_clause(std::string_view word,
                                              const std::vector<std::string>& candidates);

}  // namespace carousel
