#pragma once
// Runs a lesson's programs one after the other and collects their output. A program that lacks a required
// device exits with exit_code::no_device and a sentence on stderr; any other non-zero exit, a signal or a
// timeout fails the lesson. Each program is a child in its own process group, which is killed at the
// program's time limit. The process that holds a lesson's space ends with the lesson.

#include <functional>
#include <string>
#include <vector>

#include "lab/verdict.hpp"

namespace carousel::lab {

struct lab_places {
    std::string programs;  ///< folder with `carousel` and the lessons' programs
};

struct lesson_result {
    const lesson* about = nullptr;
    figures measured;
    std::vector<std::string> failures;  ///< one sentence per failed program
    std::vector<claim_verdict> verdicts;
    std::string recorded_on;  ///< machine of the recorded figures that explain what cannot be measured here
    f64 seconds = 0;
    [[nodiscard]] bool passed() const noexcept;
};

/// Runs the lesson. `report_progress` is called with a line before each program starts. Failures of a program
/// are returned in `failures`, never thrown.
[[nodiscard]] lesson_result run_lesson(const lesson& l, const lab_places& places,
                                       const std::function<void(const std::string&)>& report_progress);

}  // namespace carousel::lab
