#include "lab/lesson_plot.hpp"

namespace carousel::lab {

std::optional<plot::chart> curves_of(const lesson_result& r) {
    const lesson_plot& p = r.about->plot;
    if (!p.bars.empty() || r.measured.curves.empty()) return std::nullopt;
    plot::chart c{p.title, "", p.x_label, p.y_label, {}};
    for (const curve& one : r.measured.curves)
        c.curves.push_back({one.name, one.points, false, c.curves.size()});
    return c;
}

std::optional<plot::bar_chart> bars_of(const lesson_result& r) {
    const lesson_plot& p = r.about->plot;
    plot::bar_chart c{p.title, "", p.y_label, {}};
    for (const lesson_bar& b : p.bars)
        if (const auto at = r.measured.values.find(b.figure); at != r.measured.values.end())
            c.bars.push_back({b.name, at->second});
    if (c.bars.empty()) return std::nullopt;
    return c;
}

}  // namespace carousel::lab
