#pragma once
// A lesson as text for a terminal: the list, the question and the result. Pure functions.

#include <optional>
#include <string>
#include <vector>

#include "lab/run_lesson.hpp"

namespace carousel::lab {

[[nodiscard]] std::string list_text(std::size_t columns);
/// Returns title, page, question and answers.
[[nodiscard]] std::string question_text(const lesson& l, std::size_t columns);
/// Returns plot, explanations, the claims shown by a kill, and whether the prediction was right; `predicted`:
/// index of the learner's answer, nullopt if none was requested.
[[nodiscard]] std::string result_text(const lesson_result& r, std::optional<int> predicted,
                                      std::size_t columns);
/// Parses "a", "b" ... as one of `answers` answers; nullopt if it is none of them.
[[nodiscard]] std::optional<int> answer_from(const std::string& typed, std::size_t answers);
/// Returns "2 of 15 lessons failed: ...", or "" if none failed.
[[nodiscard]] std::string failures_text(const std::vector<lesson_result>& all);

}  // namespace carousel::lab
