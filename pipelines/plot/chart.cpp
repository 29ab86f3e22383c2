#include "plot/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace carousel::plot {
namespace {

constexpr f64 width = 860, height = 520, left = 80, right = 230, top = 62, bottom = 64;
constexpr f64 bar_left = 300, bar_right = 110, bar_step = 26;
// distinguishable with red-green colour blindness, too (Okabe and Ito's palette)
constexpr std::array<const char*, 6> colors{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

std::string text(f64 x, f64 y, const char* anchor, const std::string& what, const char* more = "") {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                       escaped(what));
}
std::string rule(f64 x0, f64 y0, f64 x1, f64 y1, const char* stroke) {
    return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x0,
                       y0, x1, y1, stroke);
}

const char* color_of(const curve& c) { return colors[c.color % colors.size()]; }

f64 height_of(const bar_chart& c) { return top + bar_step * static_cast<f64>(c.bars.size()) + bottom; }

std::string head(const std::string& title, const std::string& subtitle, f64 high, f64 at) {
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
               "{1}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#202020\">\n<rect width=\"{0}\" "
               "height=\"{1}\" fill=\"#ffffff\"/>\n",
               width, high) +
           text(at, 24, "start", title, " font-size=\"16\" font-weight=\"bold\"") +
           text(at, 44, "start", subtitle);
}

std::string grid(const axis& x, const axis& y) {
    std::string out;
    for (int decade = x.first; decade <= x.last; ++decade) {
        for (int step = 1; step < 10; ++step) {
            const f64 value = step * std::pow(10.0, decade);
            if (step > 1 && decade == x.last) break;
            out += rule(x.at(value), y.begin, x.at(value), y.end, step == 1 ? "#b8b8b8" : "#ececec");
        }
        out +=
            text(x.at(std::pow(10.0, decade)), y.begin + 20, "middle", short_number(std::pow(10.0, decade)));
    }
    for (int decade = y.first; decade <= y.last; ++decade) {
        for (int step = 1; step < 10; ++step) {
            const f64 value = step * std::pow(10.0, decade);
            if (step > 1 && decade == y.last) break;
            out += rule(x.begin, y.at(value), x.end, y.at(value), step == 1 ? "#b8b8b8" : "#ececec");
        }
        for (const int step : {1, 2, 5}) {  // the labels 2 and 5 are drawn only if there is room for them
            if (step > 1 && (decade == y.last || y.last - y.first > 3)) break;
            const f64 value = step * std::pow(10.0, decade);
            out += text(x.begin - 8, y.at(value) + 4, "end", short_number(value));
        }
    }
    return out;
}

std::string drawn(const curve& c, const axis& x, const axis& y) {
    const std::string dashes = c.dashed ? " stroke-dasharray=\"6 4\"" : "";
    std::string points, dots;
    for (const auto& [a, b] : c.points) {
        if (!(a > 0) || !(b > 0)) continue;
        points += fmt::format("{:.1f},{:.1f} ", x.at(a), y.at(b));
        dots += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
            x.at(a), y.at(b), c.dashed ? "#ffffff" : color_of(c), color_of(c));
    }
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", points,
                       color_of(c), dashes) +
           dots;
}

std::string legend(const chart& c) {
    std::string out;
    for (std::size_t k = 0; k < c.curves.size(); ++k) {
        const curve& one = c.curves[k];
        const f64 at = top + 14 + 22 * static_cast<f64>(k), from = width - right + 18;
        out += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
            "stroke-width=\"2\"{}/>\n",
            from, at - 4, from + 34, at - 4, color_of(one), one.dashed ? " stroke-dasharray=\"6 4\"" : "");
        out += text(from + 42, at, "start", one.name);
    }
    return out;
}

constexpr std::size_t least_columns = 40, margin = 8;
constexpr const char* marks = "ox+*#%@&";

std::string padded(const std::string& text, std::size_t width, bool right) {
    const std::string cut = text.substr(0, width);
    return right ? fmt::format("{:>{}}", cut, width) : fmt::format("{:<{}}", cut, width);
}

}  // namespace

std::string escaped(const std::string& raw) {
    std::string out;
    for (const char c : raw) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string value_text(f64 value) {
    const f64 size = std::fabs(value);
    return size >= 1000 && size < 1e9 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}
std::string short_number(f64 value) {
    if (value >= 1e9) return fmt::format("{:g}G", value / 1e9);
    if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
    if (value >= 1e3) return fmt::format("{:g}k", value / 1e3);
    return fmt::format("{:g}", value);
}

std::string svg_of(const chart& c) {
    extent xs, ys;
    for (const curve& one : c.curves)
        for (const auto& [a, b] : one.points) xs.add(a), ys.add(b);
    std::string svg = head(c.title, c.subtitle, height, left);
    if (xs.empty() || ys.empty()) return svg + text(left, height / 2, "start", "no data") + "</svg>\n";
    const axis x(xs.least, xs.most, left, width - right), y(ys.least, ys.most, height - bottom, top);
    svg += grid(x, y);
    for (const curve& one : c.curves) svg += drawn(one, x, y);
    svg += text((left + width - right) / 2, height - 18, "middle", c.x_label);
    svg += text(22, (top + height - bottom) / 2, "middle", c.y_label,
                fmt::format(" transform=\"rotate(-90 22 {:.1f})\"", (top + height - bottom) / 2).c_str());
    return svg + legend(c) + "</svg>\n";
}

std::string svg_of(const bar_chart& c) {
    extent all;
    for (const bar& b : c.bars) all.add(b.value);
    const f64 high = height_of(c), end = high - bottom;
    std::string svg = head(c.title, c.subtitle, high, 20);
    if (all.empty()) return svg + text(20, top + 10, "start", "no data") + "</svg>\n";
    const axis x(all.least / 3, all.most, bar_left, width - bar_right);
    for (int decade = x.first; decade <= x.last; ++decade) {
        const f64 at = x.at(std::pow(10.0, decade));
        svg += rule(at, top, at, end, "#b8b8b8");
        svg += text(at, end + 18, "middle", short_number(std::pow(10.0, decade)));
    }
    for (std::size_t k = 0; k < c.bars.size(); ++k) {
        const f64 y = top + bar_step * static_cast<f64>(k) + 4;
        svg += text(bar_left - 10, y + 13, "end", c.bars[k].name);
        if (!(c.bars[k].value > 0)) continue;
        const f64 to = x.at(c.bars[k].value);
        svg += fmt::format(
            "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"18\" fill=\"{}\"/>\n",
            bar_left, y, to - bar_left, colors[0]);
        svg += text(to + 6, y + 13, "start", value_text(c.bars[k].value));
    }
    return svg + text((bar_left + width - bar_right) / 2, high - 18, "middle", c.label) + "</svg>\n";
}

std::string svg_of(const std::vector<chart>& charts, const std::vector<bar_chart>& bars) {
    std::string parts;
    f64 y = 0;
    const auto add = [&](const auto& c, f64 high) {
        parts += fmt::format("<g transform=\"translate(0 {})\">\n{}</g>\n", y, svg_of(c));
        y += high;
    };
    for (const chart& c : charts) add(c, height);
    for (const bar_chart& c : bars) add(c, height_of(c));
    return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\">\n{}</svg>\n",
                       width, y, parts);
}

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
