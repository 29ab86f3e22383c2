#pragma once
// The lab's report: one self-contained HTML page (no external scripts, fonts or pictures). Pure functions,
// except this_machine().

#include <string>
#include <vector>

#include "lab/run_lesson.hpp"

namespace carousel::lab {

/// The machine on which the figures were measured.
struct lab_machine {
    std::string processor, system, when;
};
/// Describes this machine; fields that cannot be determined are "unknown".
[[nodiscard]] lab_machine this_machine();

[[nodiscard]] std::string html_report(const std::vector<lesson_result>& all, const lab_machine& machine);

}  // namespace carousel::lab
