#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plot/axis.hpp"
#include "plot/chart.hpp"

namespace carousel::plot {
namespace {

constexpr std::size_t least_columns = 40, margin = 8;
constexpr const char* marks = "ox+*#%@&";

std::string padded(const std::string& text, std::size_t width, bool right) {
    const std::string cut = text.substr(0, width);
    return right ? fmt::format("{:>{}}", cut, width) : fmt::format("{:<{}}", cut, width);
}

}  // namespace

std::string text_of(const chart& c, std::size_t columns, std::size_t rows) {
    columns = std::max(columns, least_columns), rows = std::max<std::size_t>(rows, 4);
    extent xs, ys;
    for (const curve& one : c.curves)
        for (const auto& [a, b] : one.points) xs.add(a), ys.add(b);
    std::string out = padded(fmt::format("{} ({})", c.title, c.y_label), columns, false);
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
    if (xs.empty() || ys.empty()) return out + "  no data\n";
    const std::size_t wide = columns - margin - 2;
    const axis x(xs.least, xs.most, 0, static_cast<f64>(wide - 1)),
        y(ys.least, ys.most, static_cast<f64>(rows - 1), 0);
    std::vector<std::string> field(rows, std::string(wide, ' '));
    const auto place = [](f64 at, std::size_t size) {
        return static_cast<std::size_t>(std::clamp(at + 0.5, 0.0, static_cast<f64>(size - 1)));
    };
    for (std::size_t k = 0; k < c.curves.size(); ++k)
        for (const auto& [a, b] : c.curves[k].points)
            if (a > 0 && b > 0) field[place(y.at(b), rows)][place(x.at(a), wide)] = marks[k % 8];
    for (std::size_t row = 0; row < rows; ++row) {
        std::string label;
        for (int decade = y.first; decade <= y.last; ++decade)
            if (place(y.at(std::pow(10.0, decade)), rows) == row)
                label = short_number(std::pow(10.0, decade));
        field[row].erase(field[row].find_last_not_of(' ') + 1);
        out += padded(label, margin, true) + " |" + field[row] + "\n";
    }
    out += std::string(margin + 1, ' ') + "+" + std::string(wide, '-') + "\n";
    const std::string low = short_number(std::pow(10.0, x.first)),
                      high = short_number(std::pow(10.0, x.last));
    const std::size_t room = wide > low.size() + high.size() ? wide - low.size() - high.size() : 1;
    std::string label = c.x_label.substr(0, room > 2 ? room - 2 : 0);
    const std::size_t before = (room - label.size()) / 2;
    out += std::string(margin + 2, ' ') + low + std::string(before, ' ') + label +
           std::string(room - before - label.size(), ' ') + high + "\n";
    for (std::size_t k = 0; k < c.curves.size(); ++k)
        out += fmt::format("{}{} {}\n", std::string(margin + 2, ' '), marks[k % 8],
                           c.curves[k].name.substr(0, wide - 2));
    return out;
}

std::string text_of(const bar_chart& c, std::size_t columns) {
    columns = std::max(columns, least_columns);
    extent all;
    std::size_t names = 0;
    for (const bar& b : c.bars) all.add(b.value), names = std::max(names, b.name.size());
    names = std::min(names, columns / 2);
    std::string out = padded(fmt::format("{} ({})", c.title, c.label), columns, false);
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
    if (all.empty()) return out + "  no data\n";
    const std::size_t figures = 10, wide = columns - names - figures - 4;
    const axis x(all.least / 3, all.most, 0, static_cast<f64>(wide));
    for (const bar& b : c.bars) {
        if (!(b.value > 0)) {
            out += "  " + padded(b.name, names, true) + " -\n";
            continue;
        }
        const auto length = static_cast<std::size_t>(std::clamp(x.at(b.value), 1.0, static_cast<f64>(wide)));
        out += "  " + padded(b.name, names, true) + " " + std::string(length, '#') + " " +
               value_text(b.value) + "\n";
    }
    return out;
}

}  // namespace carousel::plot
