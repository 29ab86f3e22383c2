#pragma once
// Runs a lesson's programs, and evaluates their figures.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/lesson.hpp"

namespace carousel::lab {

// Evaluates a lesson's figures: finds for each claim the row whose conditions hold. Pure functions.

enum class outcome : u8 {
    explained,    ///< a row matches
    unavailable,  ///< this machine or this build lacks something that the claim needs
    unexplained   ///< no row matches, or an expected figure is missing
};

struct claim_verdict {
    const claim* about = nullptr;
    outcome what = outcome::unexplained;
    std::string text;  ///< explained: the explanation; unavailable: the reason why the claim cannot run;
                       ///< unexplained: the figures that match no row
    int answer = no_answer;  ///< the answer that is correct according to the matching row
    std::size_t row = 0;     ///< index in about->rows, if explained
    std::string recorded;  ///< if unavailable: the explanation that matches the recorded figures; "" if none
};

/// Figures recorded with the lesson on another machine.
struct recording {
    std::string machine;  ///< its processor, GPU and system, and the date; "": no recording
    figures measured;
};

[[nodiscard]] bool holds(const condition& c, const figures& f) noexcept;
/// Replaces each {figure} by its value with three digits, or by "?" if the figure is missing.
[[nodiscard]] std::string filled(const char* text, const figures& f);
[[nodiscard]] claim_verdict judge(const claim& c, const figures& f);
[[nodiscard]] std::vector<claim_verdict> judge(const lesson& l, const figures& f);
/// Parses the text of recorded.txt. Throws config_error for a malformed line.
[[nodiscard]] recording recording_from(const std::string& text);
/// Sets `recorded` of each unavailable claim with a row that matches the recorded figures.
void add_recorded(const recording& from, std::vector<claim_verdict>& all);
/// The claims that could not be measured for the same reason.
struct unavailable {
    std::string reason;
    std::string names;  ///< names of the claims without a recorded explanation, separated by "; "
    u32 recorded = 0;   ///< number of claims with a recorded explanation
};
[[nodiscard]] std::vector<unavailable> unavailable_claims(const std::vector<claim_verdict>& all);
/// Returns the right answer according to the figures, or nullopt if the deciding claim was not explained.
[[nodiscard]] std::optional<int> right_answer(const lesson& l, const std::vector<claim_verdict>& all);

// Runs a lesson's programs one after the other and collects their output. A program that lacks a required
// device exits with exit_code::no_device and a sentence on stderr; any other non-zero exit, a signal or a
// timeout fails the lesson. Each program is a child in its own process group, which is killed at the
// program's time limit. The process that holds a lesson's space ends with the lesson.

struct lab_places {
    std::string programs;  ///< folder with `carousel` and the lessons' programs
};

struct lesson_result {
    const lesson* about = nullptr;
    figures measured;
    std::vector<std::string> failures;  ///< one sentence per failed program
    std::vector<claim_verdict> verdicts;
    std::string recorded_on;  ///< the machine on which the recorded figures were measured
    f64 seconds = 0;
    [[nodiscard]] bool passed() const noexcept;
};

/// Runs the lesson. `report_progress` is called with a line before each program starts. Failures of a program
/// are returned in `failures`, never thrown.
[[nodiscard]] lesson_result run_lesson(const lesson& l, const lab_places& places,
                                       const std::function<void(const std::string&)>& report_progress);

}  // namespace carousel::lab
