#include "bench/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace carousel::bench {
namespace {

constexpr f64 width = 860, height = 520, left = 80, right = 230, top = 62, bottom = 64;
// told apart also by those who don't see red and green (Okabe and Ito's palette)
constexpr std::array<const char*, 6> colors{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
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

/// A logarithmic axis of whole decades around `low` .. `high`, from position `begin` to `end`.
struct axis {
    f64 first, last, begin, end;  // decades; pixels
    axis(f64 low, f64 high, f64 from, f64 to)
        : first(std::floor(std::log10(low))), last(std::ceil(std::log10(high))), begin(from), end(to) {
        if (last <= first) last = first + 1;
    }
    [[nodiscard]] f64 at(f64 value) const {
        return begin + (std::log10(value) - first) / (last - first) * (end - begin);
    }
};

/// 1000 -> "1k", 0.01 -> "0.01"
std::string number(f64 value) {
    if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
    if (value >= 1e3) return fmt::format("{:g}k", value / 1e3);
    return fmt::format("{:g}", value);
}

std::string text(f64 x, f64 y, const char* anchor, const std::string& what, const char* more = "") {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                       escaped(what));
}
std::string rule(f64 x0, f64 y0, f64 x1, f64 y1, const char* stroke) {
    return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x0,
                       y0, x1, y1, stroke);
}

struct series {
    std::string name;
    const char* color;
    bool dashed;
    std::vector<std::pair<f64, f64>> points;  // triangles, ms
};

std::vector<series> series_of(const bench_result& r) {
    std::vector<picture_size> sizes;
    for (const cell_result& c : r.cells)
        if (std::find(sizes.begin(), sizes.end(), c.size) == sizes.end()) sizes.push_back(c.size);
    std::vector<series> all;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        const std::string size = fmt::format("{}x{}", sizes[k].width, sizes[k].height);
        series ours{"Carousel " + size, colors[k % colors.size()], false, {}},
            theirs{"OpenGL " + size, colors[k % colors.size()], true, {}};
        for (const cell_result& c : r.cells) {
            if (!(c.size == sizes[k])) continue;
            ours.points.emplace_back(c.triangles, c.frame.median);
            if (c.with_peer) theirs.points.emplace_back(c.triangles, c.peer.median);
        }
        std::sort(ours.points.begin(), ours.points.end());
        std::sort(theirs.points.begin(), theirs.points.end());
        all.push_back(std::move(ours));
        if (!theirs.points.empty()) all.push_back(std::move(theirs));
    }
    return all;
}

std::string grid(const axis& x, const axis& y) {
    std::string out;
    for (f64 decade = x.first; decade <= x.last; ++decade) {
        for (int step = 1; step < 10; ++step) {
            const f64 value = step * std::pow(10.0, decade);
            if (step > 1 && decade == x.last) break;
            out += rule(x.at(value), y.begin, x.at(value), y.end, step == 1 ? "#b8b8b8" : "#ececec");
        }
        out += text(x.at(std::pow(10.0, decade)), y.begin + 20, "middle", number(std::pow(10.0, decade)));
    }
    for (f64 decade = y.first; decade <= y.last; ++decade) {
        for (int step = 1; step < 10; ++step) {
            const f64 value = step * std::pow(10.0, decade);
            if (step > 1 && decade == y.last) break;
            out += rule(x.begin, y.at(value), x.end, y.at(value), step == 1 ? "#b8b8b8" : "#ececec");
        }
        for (const int step : {1, 2, 5}) {  // 2 and 5 where there is room for them
            if (step > 1 && (decade == y.last || y.last - y.first > 3)) break;
            const f64 value = step * std::pow(10.0, decade);
            out += text(x.begin - 8, y.at(value) + 4, "end", number(value));
        }
    }
    return out;
}

std::string curve(const series& s, const axis& x, const axis& y) {
    const std::string dashes = s.dashed ? " stroke-dasharray=\"6 4\"" : "";
    std::string points, dots;
    for (const auto& [triangles, ms] : s.points) {
        points += fmt::format("{:.1f},{:.1f} ", x.at(triangles), y.at(ms));
        dots += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
            x.at(triangles), y.at(ms), s.dashed ? "#ffffff" : s.color, s.color);
    }
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", points,
                       s.color, dashes) +
           dots;
}

}  // namespace

std::string plot_of(const bench_result& r) {
    const std::vector<series> all = series_of(r);
    f64 least_x = 1e300, most_x = 0, least_y = 1e300, most_y = 0;
    for (const series& s : all)
        for (const auto& [triangles, ms] : s.points) {
            least_x = std::min(least_x, triangles), most_x = std::max(most_x, triangles);
            least_y = std::min(least_y, ms), most_y = std::max(most_y, ms);
        }
    const axis x(least_x, most_x, left, width - right), y(least_y, most_y, height - bottom, top);
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"13\" fill=\"#202020\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"#ffffff\"/>\n",
        width, height);
    svg += text(left, 24, "start", fmt::format("{}, one frame: {}", r.scene, r.device),
                " font-size=\"16\" font-weight=\"bold\"");
    svg += text(left, 44, "start",
                r.peer_renderer.empty()
                    ? fmt::format("medians of {} frames", r.frames)
                    : fmt::format("medians of {} frames; OpenGL: {}", r.frames, r.peer_renderer));
    svg += grid(x, y);
    for (const series& s : all) svg += curve(s, x, y);
    svg += text((left + width - right) / 2, height - 18, "middle", "triangles of the mesh");
    svg += text(22, (top + height - bottom) / 2, "middle", "ms a frame (vertex + clear + raster + resolve)",
                fmt::format(" transform=\"rotate(-90 22 {:.1f})\"", (top + height - bottom) / 2).c_str());
    for (std::size_t k = 0; k < all.size(); ++k) {
        const f64 at = top + 14 + 22 * static_cast<f64>(k), from = width - right + 18;
        svg += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
            "stroke-width=\"2\"{}/>\n",
            from, at - 4, from + 34, at - 4, all[k].color, all[k].dashed ? " stroke-dasharray=\"6 4\"" : "");
        svg += text(from + 42, at, "start", all[k].name);
    }
    return svg + "</svg>\n";
}

}  // namespace carousel::bench
