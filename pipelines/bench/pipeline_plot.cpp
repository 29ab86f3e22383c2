// The plots of a pipeline bench: a chart of frames/s and, if lone frames were measured, one of their time.
// The x axis shows the depths if several were measured, otherwise the picture sizes.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bench/pipeline_bench.hpp"
#include "plot/chart.hpp"

namespace carousel::bench {
namespace {

bool is_over_depths(const pipeline_bench_result& r) {
    return std::count_if(r.options.depths.begin(), r.options.depths.end(),
                         [](const auto& d) { return d.has_value(); }) > 1;
}

f64 pixels_of(const std::optional<picture_size>& s) {
    return s ? static_cast<f64>(s->width) * static_cast<f64>(s->height) : 1;
}

struct chart_kind {
    bool lone, over_depths;
};

/// Names a curve by the property that is constant on it; its points differ in the property on the x axis.
/// Short, because it is shown in the legend.
std::string curve_name(const std::string& mode, const std::optional<picture_size>& size,
                       const std::optional<forced_depth>& depth, chart_kind kind) {
    if (kind.over_depths) return size ? fmt::format("{} {}x{}", mode, size->width, size->height) : mode;
    return depth ? fmt::format("{} {}/{}", mode, depth->in_flight, depth->window) : mode;
}

plot::curve bound_curve(const pipeline_bench_result& r, chart_kind kind) {
    plot::curve alone{"kernels", {}, true, 0};
    for (const bench_bound& b : r.bounds)
        alone.points.emplace_back(
            pixels_of(b.size), median_of(column(b, kind.lone ? &reported_kernel_figures::lone_ms
                                                             : &reported_kernel_figures::frames_per_second)));
    std::sort(alone.points.begin(), alone.points.end());
    return alone;
}

/// The bound is the same at any depth: a line from the least to the greatest depth.
std::vector<plot::curve> bound_levels(const pipeline_bench_result& r, chart_kind kind) {
    std::vector<plot::curve> all;
    for (const bench_bound& b : r.bounds) {
        const f64 level = median_of(column(
            b, kind.lone ? &reported_kernel_figures::lone_ms : &reported_kernel_figures::frames_per_second));
        plot::curve& line = all.emplace_back(
            plot::curve{curve_name("kernels", b.size, std::nullopt, kind), {}, true, all.size()});
        for (const auto& d : r.options.depths)
            if (d) line.points.emplace_back(d->in_flight, level);
        std::sort(line.points.begin(), line.points.end());
    }
    return all;
}

plot::chart chart_of(const pipeline_bench_result& r, chart_kind kind) {
    std::vector<plot::curve> curves;
    if (kind.over_depths)
        curves = bound_levels(r, kind);
    else if (!r.bounds.empty())
        curves.push_back(bound_curve(r, kind));
    std::size_t color = curves.size();
    for (const bench_cell& c : r.cells) {
        if (c.lone != kind.lone || (kind.over_depths && !c.depth)) continue;
        const std::string name = curve_name(c.mode, c.size, c.depth, kind);
        auto at = std::find_if(curves.begin(), curves.end(),
                               [&](const plot::curve& other) { return other.name == name; });
        if (at == curves.end()) at = curves.insert(at, plot::curve{name, {}, false, color++});
        at->points.emplace_back(
            kind.over_depths ? c.depth->in_flight : pixels_of(c.size),
            median_of(
                column(c.runs.back(), kind.lone ? &run_figures::p50_ms : &run_figures::frames_per_second)));
    }
    for (plot::curve& c : curves) std::sort(c.points.begin(), c.points.end());
    return {fmt::format("{}: {}", std::filesystem::path(r.options.file).filename().string(),
                        kind.lone ? "a single frame" : "as fast as possible"),
            fmt::format("medians of {} rounds", r.options.rounds),
            kind.over_depths ? "frames in flight of every stage" : "pixels of a picture",
            kind.lone ? "ms from the source to the sink (p50)" : "frames/s", std::move(curves)};
}

}  // namespace

std::string plot_of(const pipeline_bench_result& r) {
    std::vector<plot::chart> charts{chart_of(r, {false, is_over_depths(r)})};
    if (r.options.lone) charts.push_back(chart_of(r, {true, is_over_depths(r)}));
    return plot::svg_of(charts);
}

}  // namespace carousel::bench
