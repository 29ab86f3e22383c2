#pragma once
// A lesson's plot: its programs' curves, or figures as bars.

#include <optional>

#include "lab/run_lesson.hpp"
#include "plot/chart.hpp"

namespace carousel::lab {

/// Returns nullopt if the lesson plots bars or no curve was measured.
[[nodiscard]] std::optional<plot::chart> curves_of(const lesson_result& r);
/// Returns nullopt if the lesson plots curves or none of its figures was measured. Omits figures that were
/// not measured.
[[nodiscard]] std::optional<plot::bar_chart> bars_of(const lesson_result& r);

}  // namespace carousel::lab
