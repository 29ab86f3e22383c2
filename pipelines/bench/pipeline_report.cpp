// The results of `carousel bench pipeline` as JSON and as a table.

#include "bench/pipeline_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/json.hpp"
#include "plot/chart.hpp"

namespace carousel::bench {
namespace {

using nlohmann::ordered_json;

struct figure {
    const char* key;
    const char* title;
    f64 run_figures::*value;
    f64 unit;  ///< the table's unit
    int decimals;
};
constexpr f64 mib = 1024 * 1024;
constexpr figure figures[] = {{"frames_per_second", "frames/s", &run_figures::frames_per_second, 1, 1},
                              {"p50_ms", "p50 ms", &run_figures::p50_ms, 1, 2},
                              {"p99_ms", "p99 ms", &run_figures::p99_ms, 1, 2},
                              {"cpu_ms_per_frame", "CPU ms/frame", &run_figures::cpu_ms_per_frame, 1, 3},
                              {"memory_bytes", "memory MiB", &run_figures::memory_bytes, mib, 0},
                              {"resident_bytes", "resident MiB", &run_figures::resident_bytes, mib, 0},
                              {"gpu_bytes", "GPU MiB", &run_figures::gpu_bytes, mib, 0}};

bool is_reported(const std::vector<f64>& values) {
    return !values.empty() && std::none_of(values.begin(), values.end(), [](f64 v) { return v < 0; });
}

std::string letter(std::size_t build) { return build == 0 ? "A" : "B"; }

bool windowed(const pipeline_bench_result& r) {
    for (const bench_cell& c : r.cells)
        for (const auto& runs : c.runs)
            for (const run_figures& f : runs)
                if (!f.latency_of_window) return false;
    return true;
}

difference difference_in(const bench_cell& c, const figure& f) {
    return c.runs.size() < 2 ? difference{}
                             : paired_difference(column(c.runs[0], f.value), column(c.runs[1], f.value));
}

ordered_json difference_json(const bench_cell& c) {
    if (c.runs.size() < 2) return nullptr;
    ordered_json out = ordered_json::object();
    for (const figure& f : figures) {
        const difference d = difference_in(c, f);
        out[f.key] = d.known ? ordered_json{{"percent", d.percent}, {"low", d.low}, {"high", d.high}}
                             : ordered_json(nullptr);
    }
    return out;
}

ordered_json cell_json(const bench_cell& c) {
    ordered_json runs = ordered_json::object(), medians = ordered_json::object();
    for (std::size_t k = 0; k < c.runs.size(); ++k) {
        ordered_json list = ordered_json::array(), middle = ordered_json::object();
        for (const run_figures& run : c.runs[k]) {
            ordered_json one = ordered_json::object();
            for (const figure& f : figures)
                one[f.key] = run.*f.value < 0 ? ordered_json(nullptr) : ordered_json(run.*f.value);
            one["frames"] = run.frames;
            one["seconds"] = run.seconds;
            list.push_back(std::move(one));
        }
        for (const figure& f : figures) {
            const std::vector<f64> values = column(c.runs[k], f.value);
            middle[f.key] = is_reported(values) ? ordered_json(median_of(values)) : ordered_json(nullptr);
        }
        runs[letter(k)] = std::move(list);
        medians[letter(k)] = std::move(middle);
    }
    return {{"mode", c.mode},
            {"width", c.size ? ordered_json(c.size->width) : ordered_json(nullptr)},
            {"height", c.size ? ordered_json(c.size->height) : ordered_json(nullptr)},
            {"depth", c.depth ? ordered_json{{"in_flight", c.depth->in_flight}, {"window", c.depth->window}}
                              : ordered_json(nullptr)},
            {"load", c.lone ? "lone" : "saturated"},
            {"runs", runs},
            {"median", medians},
            {"difference", difference_json(c)},
            {"verdict", c.runs.size() < 2 ? ordered_json(nullptr)
                                          : ordered_json(verdict_on_rate(difference_in(c, figures[0]),
                                                                         resolution_percent(c)))}};
}

/// Returns the cell that has the same size, depth and load, but no isolation; null if that cell was not
/// measured.
const bench_cell* baseline_of(const pipeline_bench_result& r, const bench_cell& c) {
    for (const bench_cell& other : r.cells)
        if (other.mode == "none" && c.mode != "none" && other.size == c.size && other.depth == c.depth &&
            other.lone == c.lone)
            return &other;
    return nullptr;
}

/// Returns the ratio b / a, computed from the pair of figures of each round.
difference share_of(const std::vector<f64>& a, const std::vector<f64>& b) {
    difference d = paired_difference(a, b);
    for (f64* percent : {&d.percent, &d.low, &d.high}) *percent = 1 + *percent / 100;
    return d;
}

/// Selects which of a cell's figures is compared with a bound: frames/s, or the time of a lone frame.
f64 run_figures::*compared(const bench_cell& c) {
    return c.lone ? &run_figures::p50_ms : &run_figures::frames_per_second;
}
f64 reported_kernel_figures::*compared_bound(const bench_cell& c) {
    return c.lone ? &reported_kernel_figures::lone_ms : &reported_kernel_figures::frames_per_second;
}

/// Returns one ratio per build; empty if there is no baseline.
std::vector<difference> shares_of_none(const pipeline_bench_result& r, const bench_cell& c) {
    std::vector<difference> all;
    const bench_cell* none = baseline_of(r, c);
    for (std::size_t k = 0; none != nullptr && k < c.runs.size(); ++k)
        all.push_back(share_of(column(none->runs[k], compared(c)), column(c.runs[k], compared(c))));
    return all;
}
std::vector<difference> shares_of_kernels(const pipeline_bench_result& r, const bench_cell& c) {
    std::vector<difference> all;
    const bench_bound* bound = bound_of(r, c);
    for (std::size_t k = 0; bound != nullptr && k < c.runs.size(); ++k)
        all.push_back(share_of(column(*bound, compared_bound(c)), column(c.runs[k], compared(c))));
    return all;
}

ordered_json shares_json(const std::vector<difference>& shares) {
    if (shares.empty()) return nullptr;
    ordered_json out = ordered_json::object();
    for (std::size_t k = 0; k < shares.size(); ++k) {
        const difference& d = shares[k];
        out[letter(k)] = d.known ? ordered_json{{"ratio", d.percent}, {"low", d.low}, {"high", d.high}}
                                 : ordered_json(nullptr);
    }
    return out;
}

std::string shares_text(const std::vector<difference>& shares, const std::string& of) {
    std::string text;
    for (std::size_t k = 0; k < shares.size(); ++k) {
        const difference& d = shares[k];
        if (d.known)
            text += fmt::format("  {:.2f} of {} (95 %: {:.2f} to {:.2f}){}\n", d.percent, of, d.low, d.high,
                                shares.size() > 1 ? ", " + letter(k) : "");
    }
    return text;
}

std::string all_shares_text(const pipeline_bench_result& r, const bench_cell& c) {
    const bench_bound* bound = bound_of(r, c);
    const f64 alone = bound == nullptr ? 0 : median_of(column(*bound, compared_bound(c)));
    const std::string kernels = c.lone ? fmt::format("the kernels' {:.3g} ms", alone)
                                       : fmt::format("the kernels' {:.0f} frames/s", alone);
    return shares_text(shares_of_kernels(r, c), kernels) +
           shares_text(shares_of_none(r, c),
                       c.lone ? "the time without isolation" : "the frames/s without isolation");
}

ordered_json bound_json(const bench_bound& b) {
    ordered_json rounds = ordered_json::array();
    for (const reported_kernel_figures& f : b.rounds)
        rounds.push_back({{"lone_ms", f.lone_ms},
                          {"frames_per_second", f.frames_per_second},
                          {"queues", f.queues},
                          {"cpu_ms_per_frame", f.cpu_ms_per_frame}});
    return {{"width", b.size ? ordered_json(b.size->width) : ordered_json(nullptr)},
            {"height", b.size ? ordered_json(b.size->height) : ordered_json(nullptr)},
            {"lone_ms", median_of(column(b, &reported_kernel_figures::lone_ms))},
            {"frames_per_second", median_of(column(b, &reported_kernel_figures::frames_per_second))},
            {"rounds", rounds}};
}

std::string bound_text(const bench_bound& b) {
    const spread lone = spread_of(column(b, &reported_kernel_figures::lone_ms));
    const spread rate = spread_of(column(b, &reported_kernel_figures::frames_per_second));
    return fmt::format(
        "the kernels alone{}: a single frame {:.3g} ms ({:.3g}..{:.3g}), {:.5g} frames/s ({:.5g}..{:.5g}) in "
        "{} queue{}\n",
        b.size ? fmt::format(", {}x{}", b.size->width, b.size->height) : "", lone.median, lone.least,
        lone.most, rate.median, rate.least, rate.most, b.rounds.back().queues,
        b.rounds.back().queues > 1 ? "s" : "");
}

std::string in_table(const figure& f, const std::vector<f64>& values) {
    if (!is_reported(values)) return "-";
    const spread s = spread_of(values);
    return fmt::format("{:.{}f} ({:.{}f}..{:.{}f})", s.median / f.unit, f.decimals, s.least / f.unit,
                       f.decimals, s.most / f.unit, f.decimals);
}

std::string difference_row(const bench_cell& c, const figure& f) {
    const difference d = difference_in(c, f);
    return d.known ? fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", d.percent, d.low, d.high) : "-";
}

/// One row per figure and one column per build, so the table always fits into 100 columns.
std::string cell_table(const bench_cell& c) {
    const bool both = c.runs.size() > 1;
    std::string text = fmt::format("\n{}\n", name_of(c));
    text += both ? fmt::format("  {:<13} {:>26} {:>26}  {}\n", "", "A", "B", "B to A (95 %)") : "";
    for (const figure& f : figures) {
        if (!is_reported(column(c.runs[0], f.value))) continue;
        text += fmt::format("  {:<13} {:>26}", f.title, in_table(f, column(c.runs[0], f.value)));
        if (both)
            text += fmt::format(" {:>26}  {}", in_table(f, column(c.runs[1], f.value)), difference_row(c, f));
        text += "\n";
    }
    return text;
}

std::string verdict_text(const bench_cell& c) {
    if (c.runs.size() < 2) return "";
    return fmt::format("  {}\n", verdict_on_rate(difference_in(c, figures[0]), resolution_percent(c)));
}

// The plots of a pipeline bench: a chart of frames/s and, if lone frames were measured, a chart of the time
// of a lone frame. The x axis shows the depths if several were measured, otherwise the picture sizes.

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

/// Names a curve by the properties that all its points have in common. The points differ in the property on
/// the x axis. The name is short, because it is shown in the legend.
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

/// The bound is the same at any depth, so it is plotted as a line from the least to the greatest depth.
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

std::string json_of(const pipeline_bench_result& r) {
    ordered_json all = {
        {"file", r.options.file}, {"rounds", r.options.rounds}, {"warm_up_s", r.options.warm_up_s}};
    all[r.options.frames > 0 ? "frames" : "seconds"] =
        r.options.frames > 0 ? static_cast<f64>(r.options.frames) : r.options.seconds;
    for (std::size_t k = 0; k < r.builds.size(); ++k) all["builds"][letter(k)] = r.builds[k];
    all["latency_of"] = windowed(r) ? "window" : "run";
    all["skipped"] = r.skipped;
    all["cells"] = ordered_json::array();
    for (const bench_cell& c : r.cells) {
        all["cells"].push_back(cell_json(c));
        all["cells"].back()["of_none"] = shares_json(shares_of_none(r, c));
        all["cells"].back()["of_kernels"] = shares_json(shares_of_kernels(r, c));
    }
    all["bounds"] = ordered_json::array();
    for (const bench_bound& b : r.bounds) all["bounds"].push_back(bound_json(b));
    return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string table_of(const pipeline_bench_result& r) {
    const pipeline_bench_options& o = r.options;
    std::string text = fmt::format(
        "{}: {} rounds of {} after {} s of warm-up; medians (minimum..maximum)\n", o.file, o.rounds,
        o.frames > 0 ? fmt::format("{} frames", o.frames) : fmt::format("{} s", o.seconds), o.warm_up_s);
    if (r.builds.size() > 1)
        text += fmt::format("A: {} (--against)\nB: {} (this build)\n", r.builds[0], r.builds[1]);
    for (const std::string& each : r.skipped) text += fmt::format("left out: {}\n", each);
    if (!windowed(r))
        text +=
            "p50 and p99 cover whole runs, including their start, because an older build reports no "
            "latencies of an interval\n";
    for (const bench_bound& b : r.bounds)
        if (!b.rounds.empty()) text += bound_text(b);
    for (const bench_cell& c : r.cells) text += cell_table(c) + all_shares_text(r, c) + verdict_text(c);
    return text;
}

std::string plot_of(const pipeline_bench_result& r) {
    std::vector<plot::chart> charts{chart_of(r, {false, is_over_depths(r)})};
    if (r.options.lone) charts.push_back(chart_of(r, {true, is_over_depths(r)}));
    return plot::svg_of(charts);
}

}  // namespace carousel::bench
