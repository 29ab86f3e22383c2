#pragma once
// Line and bar plots with axes. A plot has a title with its unit, round tick values and marks on the time
// axis, and shows the values under the mouse.

#include <imgui.h>

#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::viewer {

struct plot_line {
    std::string name;
    ImU32 color = 0;
    std::vector<ImVec2> points;  ///< points in the order of x; a point with y = NaN means that there is no
                                 ///< measurement
};
struct plot_mark {
    f64 x = 0;
    ImU32 color = 0;
    std::string name;
};
struct plot_note {
    std::string text;
    ImU32 color = 0;
};
struct plot_spec {
    std::string title, unit;  ///< "Throughput", "frames/s"
    std::string x_unit;       ///< "s"
    f64 x_low = 0, x_high = 1;
    f64 y_least = 1;  ///< the y axis covers at least the range from 0 to y_least
    std::vector<plot_line> lines;
    std::size_t selected = ~std::size_t{0};  ///< index of the line that is emphasised if there are too many
                                             ///< lines to name them all
    std::vector<plot_mark> marks;
    std::vector<plot_note> notes;  ///< shown next to the title, instead of the lines' names
    f64 x_gap = 0;                 ///< points whose distance is larger are not connected by a line; 0: all
                                   ///< are connected
    bool bars = false;             ///< the first line's points are drawn as bars from 0
    bool log_x = false;            ///< x is the log10 of the value that the ticks show
};

/// Draws the plot at ImGui's cursor, in an area of `size` pixels. `name` is for tests.
void draw_plot(const char* name, const plot_spec& spec, ImVec2 size);

/// Returns the value of the line's point that is nearest to x, if that point is within `x_gap`; nullopt if
/// there is no such point, or no measurement.
[[nodiscard]] std::optional<f64> value_at(const plot_line& line, f64 x, f64 x_gap) noexcept;

/// Returns a round step (1, 2 or 5 times a power of ten) that divides `span` into at most `parts` parts.
[[nodiscard]] f64 tick_step(f64 span, int parts) noexcept;

}  // namespace carousel::viewer
