#pragma once
// The output of a lesson: text for a terminal, its plot, and an HTML page.

#include <optional>
#include <string>
#include <vector>

#include "lab/run_lesson.hpp"
#include "plot/chart.hpp"

namespace carousel::lab {

// A lesson as text for a terminal: the list, the question and the result. Pure functions.

[[nodiscard]] std::string list_text(std::size_t columns);
/// Returns title, page, question and answers.
[[nodiscard]] std::string question_text(const lesson& l, std::size_t columns);
/// Returns the plot, the explanations, the claims that are shown by killing a process, and whether the
/// prediction was right; `predicted`: index of the learner's answer, nullopt if none was requested.
[[nodiscard]] std::string result_text(const lesson_result& r, std::optional<int> predicted,
                                      std::size_t columns);
/// Returns the index of the answer that was typed as "a", "b" ...; nullopt if the text stands for none of the
/// answers.
[[nodiscard]] std::optional<int> answer_from(const std::string& typed, std::size_t answers);
/// Returns "2 of 15 lessons failed: ...", or "" if none failed.
[[nodiscard]] std::string failures_text(const std::vector<lesson_result>& all);

// A lesson's plot: its programs' curves, or figures as bars.

/// Returns nullopt if the lesson plots bars or no curve was measured.
[[nodiscard]] std::optional<plot::chart> curves_of(const lesson_result& r);
/// Returns nullopt if the lesson plots curves or none of its figures was measured. Omits figures that were
/// not measured.
[[nodiscard]] std::optional<plot::bar_chart> bars_of(const lesson_result& r);

// The lab's report: one self-contained HTML page (no external scripts, fonts or pictures). Pure functions,
// except this_machine().

/// The machine on which the figures were measured.
struct lab_machine {
    std::string processor, system, when;
};
/// Describes this machine; fields that cannot be determined are "unknown".
[[nodiscard]] lab_machine this_machine();

[[nodiscard]] std::string html_report(const std::vector<lesson_result>& all, const lab_machine& machine);

}  // namespace carousel::lab
