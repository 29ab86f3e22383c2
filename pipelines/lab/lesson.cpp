#include "lab/lesson.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "core/errors.hpp"
#include "core/user_input.hpp"

namespace carousel::lab {
namespace {

f64 number_from(const std::string& text, const std::string& line) {
    f64 value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
        throw config_error(fmt::format("\"{}\": \"{}\" is not a number", line, text));
    return value;
}

void add_point(figures& into, const std::string& name, f64 x, f64 y) {
    auto at =
        std::find_if(into.curves.begin(), into.curves.end(), [&](const curve& c) { return c.name == name; });
    if (at == into.curves.end()) at = into.curves.insert(at, curve{name, {}});
    at->points.emplace_back(x, y);
}

void read_line(const std::string& line, figures& into) {
    std::istringstream words(line);
    std::string kind, name, first, second, more;
    words >> kind >> name;
    if (kind == "missing" && !name.empty()) {
        std::getline(words >> std::ws, into.missing[name]);
        return;
    }
    words >> first;
    if (kind == "curve") words >> second;
    if ((kind == "curve" ? second : first).empty() || words >> more)
        throw config_error(
            fmt::format("\"{}\": a line is `figure NAME VALUE`, `curve NAME X Y` or `missing "
                        "NEED WHY`",
                        line));
    if (kind == "figure")
        into.values[name] = number_from(first, line);
    else
        add_point(into, name, number_from(first, line), number_from(second, line));
}

}  // namespace

void read_figures(const std::string& output, figures& into) {
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        const bool ours =
            line.starts_with("figure ") || line.starts_with("curve ") || line.starts_with("missing ");
        if (ours)
            read_line(line, into);
        else
            into.other_lines.push_back(line);
    }
}

std::string figures_text(const figures& f) {
    std::string text;
    for (const auto& [name, value] : f.values) text += fmt::format("figure {} {:.6g}\n", name, value);
    for (const curve& c : f.curves)
        for (const auto& [x, y] : c.points) text += fmt::format("curve {} {:.6g} {:.6g}\n", c.name, x, y);
    return text;
}

const lesson& lesson_from(const std::string& word) {
    std::vector<std::string> names;
    for (const lesson* l : all_lessons()) {
        if (word == std::to_string(l->number) || word == fmt::format("{:02}", l->number) || word == l->name ||
            word == fmt::format("{:02}_{}", l->number, l->name))
            return *l;
        names.emplace_back(l->name);
    }
    throw config_error(fmt::format("lab: unknown lesson \"{}\"{}; `carousel lab` lists all lessons", word,
                                   did_you_mean_clause(word, names)));
}

std::span<const lesson* const> all_lessons() noexcept {
    static constexpr const lesson* all[] = {
        &handles_lesson,     &events_lesson,    &order_lesson,  &bandwidth_lesson, &coherence_lesson,
        &frames_lesson,      &queue_lesson,     &work_lesson,   &pool_lesson,      &semaphore_lesson,
        &descriptors_lesson, &isolation_lesson, &server_lesson, &ranks_lesson,     &tenants_lesson,
    };
    return all;
}

}  // namespace carousel::lab
