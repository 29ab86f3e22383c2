#pragma once
// What a lesson's program has measured, as it prints it. A program is a short text that somebody reads and
// runs by hand, so it prints lines:
//
//   figure NAME VALUE          a number; its name says the unit: hop.us
//   curve NAME X Y             one point of a curve
//   missing NEED WHY           a part that can't run here: gpu, two_gpus, mps, shm
//
// and whatever else it likes, which is shown as it is. Pure functions.

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
    std::vector<curve> curves;                   ///< in the order in which they were begun
    std::map<std::string, std::string> missing;  ///< need -> why
    std::vector<std::string> other_lines;        ///< the other lines
};

/// Adds what `output` says. Throws config_error for a line that begins like one of the three and is none: a
/// program that prints such a line is broken, and its lesson must not pass.
void read_figures(const std::string& output, figures& into);
/// The numbers and curves of `f` as read_figures() reads them, without what is missing.
[[nodiscard]] std::string figures_text(const figures& f);

}  // namespace carousel::lab
