#pragma once
// The measurements that a lesson's program prints. A program is a short text that a learner reads and runs by
// hand, so its output is lines of text:
//
//  figure NAME VALUE          a number; its name includes the unit: hop.us
//  curve NAME X Y             one point of a curve
//  missing NEED WHY           a part that cannot run here: gpu, two_gpus, mps, shm
//
// All other lines are shown unchanged. Pure functions.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace carousel::lab {

struct curve {
    std::string name;
    std::vector<std::pair<f64, f64>> points;
};

struct figures {
    std::map<std::string, f64> values;
    std::vector<curve> curves;                   ///< in the order of their first points
    std::map<std::string, std::string> missing;  ///< need -> why
    std::vector<std::string> other_lines;        ///< lines of no other kind, unchanged
};

/// Parses `output` and adds its figures to `into`. Throws config_error for a malformed `figure`, `curve` or
/// `missing` line: a program that prints such a line is broken, and its lesson must not pass.
void read_figures(const std::string& output, figures& into);
/// Returns the numbers and curves of `f` in the format that read_figures() reads; omits `missing`.
[[nodiscard]] std::string figures_text(const figures& f);

}  // namespace carousel::lab
