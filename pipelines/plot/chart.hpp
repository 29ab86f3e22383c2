#pragma once
// Plots of measurements: curves over a logarithmic x axis, and bars next to their names, each as
// self-contained SVG 1.1 (no external fonts or styles) and as text for a terminal. Values that a logarithmic
// axis can't show (0, negative, not a number) are left out; an empty chart contains a message. Pure
// functions.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace carousel::plot {

struct curve {
    std::string name;
    std::vector<std::pair<f64, f64>> points;  ///< x, y in the units of the labels
    bool dashed = false;                      ///< drawn with hollow dots: the counterpart of the curve of the
                                              ///< same color
    std::size_t color = 0;                    ///< index into the palette, modulo its size
};

/// Both axes are logarithmic. A curve of one point is a dot.
struct chart {
    std::string title, subtitle, x_label, y_label;
    std::vector<curve> curves;
};

struct bar {
    std::string name;
    f64 value = 0;  ///< in the unit of the label
};

/// Bars along one logarithmic axis that begins a decade below the smallest value.
struct bar_chart {
    std::string title, subtitle, label;
    std::vector<bar> bars;
};

[[nodiscard]] std::string svg_of(const chart& c);
[[nodiscard]] std::string svg_of(const bar_chart& c);
/// All charts in one picture, one below the other.
[[nodiscard]] std::string svg_of(const std::vector<chart>& charts, const std::vector<bar_chart>& bars = {});

/// Lines of at most `columns` (at least 40), each with its newline.
[[nodiscard]] std::string text_of(const chart& c, std::size_t columns, std::size_t rows = 14);
[[nodiscard]] std::string text_of(const bar_chart& c, std::size_t columns);

/// Escapes a text for XML and HTML.
[[nodiscard]] std::string escaped(const std::string& text);
/// Three digits, without an exponent for usual magnitudes: 12236 as "12236", 0.01234 as "0.0123".
[[nodiscard]] std::string value_text(f64 value);
/// 1000 as "1k", 0.01 as "0.01".
[[nodiscard]] std::string short_number(f64 value);

// A logarithmic axis of whole decades that contains `low` .. `high`, from position `begin` to `end`.

struct axis {
    int first, last;  ///< decades
    f64 begin, end;   ///< positions
    axis(f64 low, f64 high, f64 from, f64 to)
        : first(static_cast<int>(std::floor(std::log10(low)))),
          last(static_cast<int>(std::ceil(std::log10(high)))),
          begin(from),
          end(to) {
        if (last <= first) last = first + 1;
    }
    [[nodiscard]] f64 at(f64 value) const {
        return begin + (std::log10(value) - first) / (last - first) * (end - begin);
    }
};

/// The smallest and largest of the values that a logarithmic axis can show.
struct extent {
    f64 least = 0, most = 0;
    void add(f64 value) {
        if (!(value > 0) || !std::isfinite(value)) return;
        least = most > 0 ? std::min(least, value) : value;
        most = std::max(most, value);
    }
    [[nodiscard]] bool empty() const { return !(most > 0); }
};

}  // namespace carousel::plot
