// Plots of throughput, latency and bytes per second over time, with a mark for each restart, and a histogram
// of the latencies of the last seconds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "telemetry/histogram.hpp"
#include "viewer/panels/panel.hpp"
#include "viewer/panels/screen.hpp"
#include "viewer/ui/plot.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

f64 seconds_ago(const model& m, u64 t) {
    return (static_cast<f64>(t) - static_cast<f64>(m.snap.taken_ns)) / 1e9;
}

plot_spec timed(const model& m, const char* title, const char* unit, f64 y_least) {
    plot_spec s;
    s.title = title;
    s.unit = unit;
    s.x_unit = std::string("s");
    s.y_least = y_least;
    s.x_low = -static_cast<f64>(m.kept.plot_span_s);
    s.x_high = 0;
    s.x_gap = 1;  // one second; while a run is watched, there are ten samples per second
    for (const telemetry::restart_mark& r : m.past.marks())
        s.marks.push_back({seconds_ago(m, r.time_ns), theme::colors().bad,
                           fmt::format("{} died", m.snap.stage_name(r.stage))});
    return s;
}

template <typename F>
void add_line(const model& m, plot_spec& s, const std::string& name, ImU32 color, F value) {
    plot_line l{name, color, {}};
    for (const telemetry::history_sample& h : m.past.samples()) {
        const f64 x = seconds_ago(m, h.time_ns);
        if (x >= s.x_low - 1) l.points.emplace_back(static_cast<f32>(x), value(h));
    }
    s.lines.push_back(std::move(l));
}

f32 at_or_zero(const std::vector<f32>& v, std::size_t k) { return k < v.size() ? v[k] : 0.0F; }
/// Returns NaN for 0 ms, which means that no latency was measured.
f32 measured(f32 ms) { return ms > 0 ? ms : std::numeric_limits<f32>::quiet_NaN(); }

/// The stage of the selected seat; shm::none if there is no such seat.
u32 selected_stage(const model& m) {
    return m.selected_seat < m.snap.seats.size() ? m.snap.seats[m.selected_seat].stage : shm::none;
}

plot_spec frames(const model& m) {
    plot_spec s = timed(m, "Throughput", "frames/s", 10);
    s.selected = selected_stage(m);
    for (std::size_t k = 0; k < m.snap.stages.size(); ++k)
        add_line(m, s, m.snap.stages[k].name, theme::stage_color(static_cast<u32>(k)),
                 [k](const telemetry::history_sample& h) { return at_or_zero(h.stage_fps, k); });
    return s;
}

plot_spec latency(const model& m) {
    plot_spec s = timed(m, "Latency p99", "ms", 1);
    s.selected = selected_stage(m);
    for (std::size_t k = 0; k < m.snap.stages.size(); ++k)
        add_line(m, s, m.snap.stages[k].name, theme::stage_color(static_cast<u32>(k)),
                 [k](const telemetry::history_sample& h) { return measured(at_or_zero(h.stage_p99_ms, k)); });
    add_line(m, s, "end to end", theme::colors().text,
             [](const telemetry::history_sample& h) { return measured(h.end_to_end_p99_ms); });
    return s;
}

plot_spec bytes(const model& m) {
    plot_spec s = timed(m, "Data through the rings", "GB/s", 0.01);
    for (std::size_t k = 0; k < m.snap.links.size(); ++k) {
        if (m.snap.links[k].stage == selected_stage(m)) s.selected = k;
        add_line(m, s, m.snap.links[k].name, theme::ring_color(m.snap, k),
                 [k](const telemetry::history_sample& h) {
                     return at_or_zero(h.link_bytes_per_second, k) / 1e9F;
                 });
    }
    return s;
}

// Returns the latencies of the sinks, measured from the source's claim; if the run's sinks measure no
// latencies, returns those of the selected stage.
plot_spec histogram(const model& m) {
    telemetry::bucket_counts sum{};
    u64 total = 0;
    for (const telemetry::stage_rates& r : m.rates.stages)
        for (std::size_t k = 0; k < sum.size(); ++k) {
            sum[k] += r.end_to_end[k];
            total += r.end_to_end[k];
        }
    std::string what = "End to end";
    if (total == 0 && m.selected_seat < m.snap.seats.size() &&
        m.snap.seats[m.selected_seat].stage < m.rates.stages.size()) {
        sum = m.rates.stages[m.snap.seats[m.selected_seat].stage].latency;
        what = m.snap.stage_name(m.snap.seats[m.selected_seat].stage).substr(0, 16);
    }
    plot_spec s;
    s.title = fmt::format("{} latency, last {:.0f} s", what, std::max(1.0, std::floor(m.rates.span_s)));
    s.unit = "number of frames by latency (ms)";
    s.x_unit = "ms";
    s.log_x = s.bars = true;
    s.y_least = 4;
    s.x_low = -2;
    const f64 slowest_ms = telemetry::percentile_ms(sum, 0.99);
    s.x_high = slowest_ms > 8000 ? 5 : slowest_ms > 800 ? 4 : 3;
    plot_line l{"frames", theme::colors().accent, {}};
    for (u32 k = 0; k < shm::latency_buckets; ++k) {
        const f64 middle = std::log10(static_cast<f64>(telemetry::upper_ns(k)) / 1e6) - 0.02;
        const bool shown = middle > s.x_low - 0.1 && middle < s.x_high + 0.1;
        if (shown && slowest_ms > 0)
            l.points.emplace_back(static_cast<f32>(middle), static_cast<f32>(sum[k]));
    }
    s.lines.push_back(std::move(l));
    for (const f64 p : {0.5, 0.99}) {
        const f64 ms = telemetry::percentile_ms(sum, p);
        if (ms <= 0) continue;
        const ImU32 color = p < 0.9 ? theme::colors().good : theme::colors().warning;
        s.marks.push_back({std::log10(ms), color, fmt::format("p{:.0f}: {} ms", p * 100, ui::number(ms))});
        s.notes.push_back({fmt::format("p{:.0f} {} ms", p * 100, ui::number(ms)), color});
    }
    return s;
}

class plots_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "plots"; }
    [[nodiscard]] const char* title() const noexcept override { return "Throughput and latency"; }

    void draw(model& m, picture_store&) override {
        const ImVec2 space = ImGui::GetContentRegionAvail();
        const f32 gap = px(10);
        const bool two_rows = space.y > px(230), two_columns = space.x > px(420);
        const ImVec2 size((space.x - (two_columns ? gap : 0)) / (two_columns ? 2.0F : 1.0F),
                          (space.y - (two_rows ? gap : 0)) / (two_rows ? 2.0F : 1.0F));
        ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(gap, gap));
        draw_plot("plots.fps", frames(m), size);
        if (two_columns) ImGui::SameLine();
        if (two_columns || two_rows) draw_plot("plots.latency", latency(m), size);
        if (two_rows && two_columns) {
            draw_plot("plots.bytes", bytes(m), size);
            ImGui::SameLine();
            draw_plot("plots.histogram", histogram(m), size);
        }
        ImGui::PopStyleVar();
    }

    /// The height of one row of plots, in which each plot has room for its title, a curve and the numbers of
    /// its axis.
    [[nodiscard]] f32 wanted_height(const model&) const override {
        return frame_height() + 2 * theme::small_font()->FontSize + px(56);
    }

    void menu(model& m, f32 width) override {
        if (width < px(200)) return;
        ImGui::PushFont(theme::small_font());
        ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(5), 0));
        for (const f32 span : {10.0F, 30.0F, 60.0F, 120.0F}) {
            bool on = m.kept.plot_span_s == span;
            const std::string label = fmt::format("{:.0f} s", span);
            if (ui::toggle("plots.span." + label, label.c_str(), "Shift+T", "time range of the plots", on))
                m.kept.plot_span_s = span;
            ImGui::SameLine();
        }
        ImGui::PopStyleVar();
        ImGui::PopFont();
    }

    bool on_key(model& m, const key_press& k) override {
        if (k.key != 'T' || !k.shift) return false;
        const f32 now = m.kept.plot_span_s;
        m.kept.plot_span_s = now < 20 ? 30.0F : now < 45 ? 60.0F : now < 90 ? 120.0F : 10.0F;
        return true;
    }
};

}  // namespace

std::unique_ptr<panel> make_plots_panel() { return std::make_unique<plots_panel>(); }

}  // namespace carousel::viewer
