#pragma once
// Runs a lesson's programs, one after the other, and collects what they say. A program that lacks what it
// needs exits with exit_code::no_device and a sentence on stderr; any other end but 0, and a time limit,
// fails the lesson. Programs are children with a process group of their own, killed with it at their limit;
// the holder of a lesson's space ends with the lesson.

#include <functional>
#include <string>
#include <vector>

#include "lab/verdict.hpp"

namespace carousel::lab {

struct lab_places {
    std::string programs;  ///< folder of carousel and the lessons' programs
};

struct lesson_result {
    const lesson* about = nullptr;
    figures measured;
    std::vector<std::string> failures;  ///< programs that failed, one sentence each
    std::vector<claim_verdict> verdicts;
    std::string recorded_on;  ///< the machine whose figures explain what can't be measured here
    f64 seconds = 0;
    [[nodiscard]] bool passed() const noexcept;
};

/// `report_progress` hears which program is on. Never throws for what a program does.
[[nodiscard]] lesson_result run_lesson(const lesson& l, const lab_places& places,
                                       const std::function<void(const std::string&)>& report_progress);

}  // namespace carousel::lab
