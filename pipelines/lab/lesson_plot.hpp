#pragma once
// What a lesson draws: its program's curves, or figures as bars.

#include <optional>

#include "lab/run_lesson.hpp"
#include "plot/chart.hpp"

namespace carousel::lab {

/// Empty: the lesson draws bars, or no curve was measured.
[[nodiscard]] std::optional<plot::chart> curves_of(const lesson_result& r);
/// Empty: the lesson draws curves, or none of the figures was measured. Those that weren't are left out.
[[nodiscard]] std::optional<plot::bar_chart> bars_of(const lesson_result& r);

}  // namespace carousel::lab
