#pragma once
// What a lesson's figures mean: for each claim the row that fits them. Pure functions.

#include <optional>
#include <string>
#include <vector>

#include "lab/lesson.hpp"

namespace carousel::lab {

enum class outcome : u8 {
    explained,   ///< a row fits
    not_here,    ///< this machine, or this build, lacks what it needs
    unexplained  ///< none fits, or a figure is missing that should be there
};

struct claim_verdict {
    const claim* about = nullptr;
    outcome what = outcome::unexplained;
    std::string text;        ///< the explanation, why it can't run, or what doesn't fit
    int answer = no_answer;  ///< that the row makes right
    std::size_t row = 0;     ///< of about->rows, where explained
};

[[nodiscard]] bool holds(const condition& c, const figures& f) noexcept;
/// {figure} replaced by its value, three digits; a figure that isn't there by "?".
[[nodiscard]] std::string filled(const char* text, const figures& f);
[[nodiscard]] claim_verdict judge(const claim& c, const figures& f);
[[nodiscard]] std::vector<claim_verdict> judge(const lesson& l, const figures& f);
/// The right answer by what was measured, if the claim that decides could run.
[[nodiscard]] std::optional<int> right_answer(const lesson& l, const std::vector<claim_verdict>& all);

}  // namespace carousel::lab
