#pragma once
// A lesson as text for a terminal: the list, what is asked, and what came of it. Pure functions.

#include <optional>
#include <string>
#include <vector>

#include "lab/run_lesson.hpp"

namespace carousel::lab {

[[nodiscard]] std::string list_text(std::size_t columns);
/// Title, page, question and answers.
[[nodiscard]] std::string question_text(const lesson& l, std::size_t columns);
/// Plot, explanations, the kill, and how the prediction did; `predicted`: one of the answers, if one was
/// asked for.
[[nodiscard]] std::string result_text(const lesson_result& r, std::optional<int> predicted,
                                      std::size_t columns);
/// "a", "b" ... as one of so many answers; nullopt: none of them.
[[nodiscard]] std::optional<int> answer_from(const std::string& typed, std::size_t answers);
/// "2 of 15 lessons failed: ...", or "".
[[nodiscard]] std::string failures_text(const std::vector<lesson_result>& all);

}  // namespace carousel::lab
