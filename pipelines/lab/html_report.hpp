#pragma once
// The lab's report: one HTML page that needs nothing else (no scripts, fonts or pictures from elsewhere).
// Pure.

#include <string>
#include <vector>

#include "lab/run_lesson.hpp"

namespace carousel::lab {

/// What the figures were measured on.
struct lab_machine {
    std::string processor, system, when;
};
/// Of this machine, as far as it says; "unknown" where it doesn't.
[[nodiscard]] lab_machine this_machine();

[[nodiscard]] std::string html_report(const std::vector<lesson_result>& all, const lab_machine& machine);

}  // namespace carousel::lab
