#include "lab/lesson_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lab/lesson_plot.hpp"
#include "os/table.hpp"
#include "plot/chart.hpp"

namespace carousel::lab {
namespace {

char letter(int answer) { return static_cast<char>('a' + answer); }

/// Wraps the text at `columns` columns.
std::string lines_of(const std::string& text, std::size_t columns, std::size_t indent) {
    return std::string(indent, ' ') + supervisor::wrapped(text, columns - indent, indent) + "\n";
}

std::string subject_lines(const claim_verdict& v, const std::string& explanation, std::size_t columns) {
    std::string text = fmt::format("{}{}\n", v.about->kill ? "the kill: " : "", v.about->name);
    if (*v.about->textbook != 0)
        text += lines_of(fmt::format("the texts: {}", v.about->textbook), columns, 2);
    return text + lines_of(supervisor::printable(explanation), columns, 2);
}

std::string verdict_lines(const claim_verdict& v, std::size_t columns) {
    return subject_lines(v, (v.what == outcome::unexplained ? "UNEXPLAINED: " : "") + v.text, columns);
}

/// Lists what could not be measured here: each reason with the claims that no recording explains, then the
/// recorded explanations.
std::string unavailable_text(const lesson_result& r, std::size_t columns) {
    std::string recorded;
    for (const claim_verdict& v : r.verdicts)
        if (!v.recorded.empty()) recorded += subject_lines(v, "recorded: " + v.recorded, columns);
    std::string text;
    for (const unavailable& n : unavailable_claims(r.verdicts)) {
        const std::string reason = supervisor::printable(n.reason);
        if (!n.names.empty()) text += lines_of(fmt::format("not here: {}: {}", reason, n.names), columns, 0);
        if (n.recorded > 0)
            text += lines_of(fmt::format("not here: {}: {} subjects, shown by figures recorded on {}", reason,
                                         n.recorded, r.recorded_on),
                             columns, 0);
    }
    if (!text.empty()) text = "\n" + text;
    return recorded.empty() ? text : text + "\n" + recorded;
}

std::string prediction_line(const lesson_result& r, std::optional<int> predicted) {
    const std::optional<int> right = right_answer(*r.about, r.verdicts);
    if (!right) return "The prediction can't be checked here.\n";
    const char* text = r.about->answers[static_cast<std::size_t>(*right)];
    if (!predicted) return fmt::format("The answer: {}) {}\n", letter(*right), text);
    if (*predicted == *right) return fmt::format("Your prediction was right: {}) {}\n", letter(*right), text);
    return fmt::format("You predicted {}); the answer is {}) {}\n", letter(*predicted), letter(*right), text);
}

}  // namespace

std::string list_text(std::size_t columns) {
    std::string text;
    for (const lesson* l : all_lessons())
        text +=
            supervisor::shortened(fmt::format("{:>3}  {:<12} {}", l->number, l->name, l->title), columns) +
            "\n";
    return text +
           "`carousel lab 1` starts the first lesson; `carousel lab --all --report lab.html` runs all and "
           "writes a report.\n";
}

std::string question_text(const lesson& l, std::size_t columns) {
    std::string text = fmt::format("Lesson {}: {}\n\n{}\n", l.number, l.title, page_of(l));
    text += lines_of(l.question, columns, 0);
    for (std::size_t k = 0; k < l.answers.size(); ++k)
        text += fmt::format("  {}) {}\n", letter(static_cast<int>(k)), l.answers[k]);
    return text;
}

std::string result_text(const lesson_result& r, std::optional<int> predicted, std::size_t columns) {
    std::string text = "\n";
    for (const std::string& line : r.measured.other_lines) text += supervisor::printable(line) + "\n";
    if (const auto c = curves_of(r))
        text += "\n" + plot::text_of(*c, columns);
    else if (const auto b = bars_of(r))
        text += "\n" + plot::text_of(*b, columns);
    text += "\n" + prediction_line(r, predicted) + "\n";
    for (const bool kill : {false, true})
        for (const claim_verdict& v : r.verdicts)
            if (v.about->kill == kill && v.what != outcome::unavailable) text += verdict_lines(v, columns);
    text += unavailable_text(r, columns);
    for (const std::string& f : r.failures)
        text += lines_of("FAILED: " + supervisor::printable(f), columns, 0);
    return text + fmt::format("\nlesson {}: {} in {:.1f} s\n", r.about->number,
                              r.passed() ? "explained" : "FAILED", r.seconds);
}

std::optional<int> answer_from(const std::string& typed, std::size_t answers) {
    std::string word;
    for (const char c : typed)
        if (std::isalnum(static_cast<unsigned char>(c)) != 0)
            word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (word.size() != 1 || word[0] < 'a' || word[0] >= letter(static_cast<int>(answers)))
        return std::nullopt;
    return word[0] - 'a';
}

std::string failures_text(const std::vector<lesson_result>& all) {
    std::string names;
    std::size_t failed = 0;
    for (const lesson_result& r : all) {
        if (r.passed()) continue;
        ++failed;
        names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", r.about->number, r.about->name);
    }
    return failed == 0 ? "" : fmt::format("{} of {} lessons failed: {}\n", failed, all.size(), names);
}

}  // namespace carousel::lab
