#pragma once
// A lesson: a question, programs that measure, and claims, each with a table of what its figures may mean.
// The explanation that is told is the first row of the table whose conditions the figures just measured meet;
// where none does the lesson fails, for then this machine does something that the lesson doesn't know.
//
// A lesson is data (lessons/NN_name/lesson.cpp), apart from its programs, which stand alone.

#include <span>
#include <string>
#include <vector>

#include "lab/figures.hpp"

namespace carousel::lab {

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
    std::vector<condition> when;  ///< all of them; never none
    const char* text;             ///< {figure} stands for its value
    int answer = no_answer;       ///< of the lesson's answers: the one that this row makes right
};

/// What is shown on one subject.
struct claim {
    const char* name;      ///< a few words
    const char* textbook;  ///< what the texts say; "": they say nothing
    const char* needs;     ///< "cpu", "gpu", "two_gpus", "mps", "shm", or what a program says is missing
    bool kill = false;     ///< somebody is killed for it
    std::vector<explanation_row> rows;
};

struct lesson_program {
    const char* name;   ///< carousel-lab-...
    const char* needs;  ///< "cpu" or "gpu": what it can do nothing without
    u32 limit_s = 30;   ///< it is killed behind that, and the lesson fails
};

struct lesson_bar {
    const char* name;
    const char* figure;
};
/// Of the curves that the programs print, or of figures beside each other (`bars`).
struct lesson_plot {
    const char *title = "", *x_label = "", *y_label = "";
    std::vector<lesson_bar> bars;  ///< none: the curves
};

struct lesson {
    u32 number = 0;
    const char* name = "";   ///< as its folder behind the number: one word
    const char* title = "";  ///< its line in the list
    const char* question = "";
    std::vector<const char*> answers;
    const char* decided_by = "";  ///< the claim whose row says which answer is right
    bool space = false;  ///< its programs' first word is the name of a space that somebody holds for each;
                         ///< for one of the GPU with memory there
    std::vector<lesson_program> programs;
    lesson_plot plot;
    std::vector<claim> claims;
};

/// In the order of their numbers.
[[nodiscard]] std::span<const lesson* const> all_lessons() noexcept;
/// By "5", "05", its name, or "05_coherence". Throws config_error, with what may be meant.
[[nodiscard]] const lesson& lesson_from(const std::string& word);
/// Its page: what it is about, in at most one screen.
[[nodiscard]] const char* page_of(const lesson& l) noexcept;
/// Figures that were measured on a machine with a GPU (lessons/NN_name/recorded.txt): a line that names the
/// machine and the date, then lines as read_figures() reads them. "": none were recorded.
[[nodiscard]] const char* recorded_of(const lesson& l) noexcept;

}  // namespace carousel::lab
