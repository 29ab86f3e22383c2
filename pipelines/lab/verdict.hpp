#pragma once
// What a lesson's figures mean: for each claim the row that fits them. Pure functions.

#include <optional>
#include <string>
#include <vector>

#include "lab/lesson.hpp"

namespace carousel::lab {

enum class outcome : u8 {
    explained,    ///< a row fits
    unavailable,  ///< this machine, or this build, lacks what it needs
    unexplained   ///< none fits, or a figure is missing that should be there
};

struct claim_verdict {
    const claim* about = nullptr;
    outcome what = outcome::unexplained;
    std::string text;        ///< the explanation, why it can't run, or what doesn't fit
    int answer = no_answer;  ///< that the row makes right
    std::size_t row = 0;     ///< of about->rows, where explained
    std::string recorded;    ///< where unavailable: the explanation that recorded figures fit; "": none
};

/// Figures of another machine, recorded with the lesson.
struct recording {
    std::string machine;  ///< its processor, GPU and system, and the date; "": nothing was recorded
    figures measured;
};

[[nodiscard]] bool holds(const condition& c, const figures& f) noexcept;
/// {figure} replaced by its value, three digits; a figure that isn't there by "?".
[[nodiscard]] std::string filled(const char* text, const figures& f);
[[nodiscard]] claim_verdict judge(const claim& c, const figures& f);
[[nodiscard]] std::vector<claim_verdict> judge(const lesson& l, const figures& f);
/// Throws config_error if a line is not one of a recording's.
[[nodiscard]] recording recording_from(const std::string& text);
/// Explains by recorded figures what could not be measured here.
void add_recorded(const recording& from, std::vector<claim_verdict>& all);
/// What could not be measured for one reason.
struct unavailable {
    std::string reason;
    std::string names;  ///< of the subjects that no recording explains, separated by "; "
    u32 recorded = 0;   ///< subjects that a recording explains
};
[[nodiscard]] std::vector<unavailable> unavailable_claims(const std::vector<claim_verdict>& all);
/// The right answer by what was measured, if the claim that decides could run.
[[nodiscard]] std::optional<int> right_answer(const lesson& l, const std::vector<claim_verdict>& all);

}  // namespace carousel::lab
