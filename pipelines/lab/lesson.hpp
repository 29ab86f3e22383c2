#pragma once
// A lesson, and the figures that its programs print.

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace carousel::lab {

// The measurements that a lesson's program prints. A program is a short text that a learner reads and runs by
// hand, so its output is lines of text:
//  figure NAME VALUE          a number; its name includes the unit: hop.us
//  curve NAME X Y             one point of a curve
//  missing NEED WHY           a part that cannot run here: gpu, two_gpus, mps, shm
// All other lines are shown unchanged. Pure functions.

struct curve {
    std::string name;
    std::vector<std::pair<f64, f64>> points;
};

struct figures {
    std::map<std::string, f64> values;
    std::vector<curve> curves;                   ///< in the order in which the output first names them
    std::map<std::string, std::string> missing;  ///< need -> why
    std::vector<std::string> other_lines;        ///< the output's other lines, unchanged
};

/// Parses `output` and adds its figures to `into`. Throws config_error for a malformed `figure`, `curve` or
/// `missing` line, because a program that prints such a line is broken, and its lesson must not pass.
void read_figures(const std::string& output, figures& into);
/// Returns the numbers and curves of `f` in the format that read_figures() reads; omits `missing`.
[[nodiscard]] std::string figures_text(const figures& f);

// A lesson: a question, programs that measure, and claims. Each claim has a table of explanations with
// conditions on the figures. The lesson shows the explanation of the first row whose conditions the measured
// figures meet. If no row matches, the lesson fails, because this machine then shows an effect that the
// lesson does not cover.
// A lesson is data (lessons/NN_name/lesson.cpp), separate from its programs, which depend on no lesson code.

enum class relation : u8 { below, above, equal };

struct condition {
    const char* figure;
    relation is;
    f64 bound;
};
[[nodiscard]] constexpr condition below(const char* figure, f64 bound) {
    return {figure, relation::below, bound};
}
[[nodiscard]] constexpr condition above(const char* figure, f64 bound) {
    return {figure, relation::above, bound};
}
[[nodiscard]] constexpr condition equal(const char* figure, f64 value) {
    return {figure, relation::equal, value};
}

constexpr int no_answer = -1;

struct explanation_row {
    std::vector<condition> when;  ///< all conditions must hold; there is at least one
    const char* text;             ///< {figure} is replaced by its value
    int answer = no_answer;       ///< index of the answer that is correct if this row matches
};

/// One effect that the lesson shows.
struct claim {
    const char* name;      ///< a few words
    const char* textbook;  ///< what the textbooks state about this effect; "": nothing
    const char* needs;  ///< "cpu", "gpu", "two_gpus", "mps", "shm", or the NEED of a program's `missing` line
    bool kill = false;  ///< the lesson kills a process to show this effect
    std::vector<explanation_row> rows;
};

struct lesson_program {
    const char* name;   ///< carousel-lab-...
    const char* needs;  ///< "cpu" or "gpu": the device without which the program cannot run at all
    u32 limit_s = 30;   ///< after this time the program is killed and the lesson fails
};

struct lesson_bar {
    const char* name;
    const char* figure;
};
/// Plots the curves that the programs print, or figures next to each other as bars (`bars`).
struct lesson_plot {
    const char *title = "", *x_label = "", *y_label = "";
    std::vector<lesson_bar> bars;  ///< empty: plot the curves
};

struct lesson {
    u32 number = 0;
    const char* name = "";   ///< the folder's name without its number: one word
    const char* title = "";  ///< the lesson's line in the list of lessons
    const char* question = "";
    std::vector<const char*> answers;
    const char* decided_by = "";  ///< name of the claim whose matching row determines the right answer
    bool space = false;  ///< each program gets, as first argument, the name of a space that is held for it;
                         ///< for a GPU program the space has GPU memory
    std::vector<lesson_program> programs;
    lesson_plot plot;
    std::vector<claim> claims;
};

/// Returns all lessons, ordered by number.
[[nodiscard]] std::span<const lesson* const> all_lessons() noexcept;
/// Finds a lesson by "5", "05", its name, or "05_coherence". Throws config_error with suggestions if none
/// matches.
[[nodiscard]] const lesson& lesson_from(const std::string& word);
/// Returns the lesson's page (page.md): an introduction of at most one screen.
[[nodiscard]] const char* page_of(const lesson& l) noexcept;
/// Returns figures that were measured on a machine with a GPU (lessons/NN_name/recorded.txt): a line with the
/// machine and the date, then lines in the format of read_figures(). "" if none were recorded.
[[nodiscard]] const char* recorded_of(const lesson& l) noexcept;

// All lessons; each is defined in its own folder.

extern const lesson handles_lesson, events_lesson, order_lesson, bandwidth_lesson, coherence_lesson,
    frames_lesson, queue_lesson, work_lesson, pool_lesson, semaphore_lesson, descriptors_lesson,
    isolation_lesson, server_lesson, ranks_lesson, tenants_lesson;

}  // namespace carousel::lab
