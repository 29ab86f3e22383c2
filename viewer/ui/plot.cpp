#include "viewer/ui/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

struct frame {
    ImVec2 low, high;  // corners of the drawing area, in pixels
    f64 x_low, x_high, y_high;
    [[nodiscard]] f32 x(f64 v) const {
        return low.x + static_cast<f32>((v - x_low) / (x_high - x_low)) * (high.x - low.x);
    }
    [[nodiscard]] f32 y(f64 v) const {
        return high.y - static_cast<f32>(std::clamp(v / y_high, 0.0, 1.0)) * (high.y - low.y);
    }
};

constexpr std::size_t most_names = 12;  ///< of more lines, only the selected one is named

std::string tick_text(f64 value, f64 step) {
    if (std::abs(value) < step / 1000) return "0";
    if (value >= 10000) return fmt::format("{:g}k", value / 1000);
    return step >= 1     ? fmt::format("{:.0f}", value)
           : step >= 0.1 ? fmt::format("{:.1f}", value)
                         : fmt::format("{:g}", std::round(value * 1e6) / 1e6);
}

f64 highest(const plot_spec& s) {
    f64 y = 0;
    for (const plot_line& l : s.lines)
        for (const ImVec2& p : l.points)
            if (p.x >= s.x_low && p.x <= s.x_high && std::isfinite(p.y))
                y = std::max(y, static_cast<f64>(p.y));
    return std::max(y, s.y_least);
}

void draw_head(ImDrawList* d, const plot_spec& s, ImVec2 at, f32 width) {
    const theme::palette& c = theme::colors();
    ImGui::PushFont(theme::small_font());
    const std::string title = fmt::format("{}  ({})", s.title, s.unit);
    d->AddText(at, c.text, title.c_str());
    std::vector<plot_note> notes = s.notes;
    if (notes.empty() && s.lines.size() <= most_names)
        for (const plot_line& l : s.lines) notes.push_back({l.name, l.color});
    const f32 end = at.x + ImGui::CalcTextSize(title.c_str()).x + px(10);
    f32 x = at.x + width;
    if (s.notes.empty() && s.lines.size() > most_names && s.selected < s.lines.size()) {
        const std::string rest = fmt::format("+{}", s.lines.size() - 1);  // the tooltip has all names
        x -= ImGui::CalcTextSize(rest.c_str()).x;
        if (x > end) d->AddText(ImVec2(x, at.y), c.muted, rest.c_str());
        notes.push_back({s.lines[s.selected].name, s.lines[s.selected].color});
    }
    for (auto n = notes.rbegin(); n != notes.rend(); ++n) {  // the numbers are drawn from the right to the
                                                             // left until there is no more room
        const std::string name = ui::fitted(n->text, px(110));
        x -= ImGui::CalcTextSize(name.c_str()).x + px(18);
        if (x < end) break;
        const f32 middle = at.y + ImGui::GetFontSize() / 2;
        d->AddRectFilled(ImVec2(x, middle - px(1.5F)), ImVec2(x + px(9), middle + px(1.5F)), n->color);
        d->AddText(ImVec2(x + px(12), at.y), c.muted, name.c_str());
    }
    ImGui::PopFont();
}

void draw_axes(ImDrawList* d, const plot_spec& s, const frame& f) {
    const theme::palette& c = theme::colors();
    ImGui::PushFont(theme::small_font());
    const f32 letter = ImGui::GetFontSize();
    const f64 step = tick_step(f.y_high, std::max(2, static_cast<int>((f.high.y - f.low.y) / px(28))));
    for (f64 v = 0; v <= f.y_high * 1.0001; v += step) {
        const f32 y = f.y(v);
        d->AddLine(ImVec2(f.low.x, y), ImVec2(f.high.x, y), c.grid);
        const std::string t = tick_text(v, step);
        d->AddText(ImVec2(f.low.x - px(5) - ImGui::CalcTextSize(t.c_str()).x, y - letter / 2), c.muted,
                   t.c_str());
    }
    const f64 x_step =
        s.log_x ? 1
                : tick_step(f.x_high - f.x_low, std::max(2, static_cast<int>((f.high.x - f.low.x) / px(70))));
    for (f64 v = std::ceil(f.x_low / x_step - 1e-9) * x_step; v <= f.x_high + x_step * 1e-6; v += x_step) {
        const f32 x = f.x(v);
        d->AddLine(ImVec2(x, f.high.y), ImVec2(x, f.high.y + px(3)), c.faint);
        const bool last = v + x_step > f.x_high + x_step * 1e-6, below_zero = !s.log_x && v < -x_step / 1000;
        const std::string size =
            s.log_x ? fmt::format("{:g}", std::pow(10.0, std::round(v))) : tick_text(std::abs(v), x_step);
        const std::string t =
            fmt::format("{}{}{}{}", below_zero ? "-" : "", size, last ? " " : "", last ? s.x_unit : "");
        const f32 w = ImGui::CalcTextSize(t.c_str()).x;
        d->AddText(ImVec2(std::clamp(x - w / 2, f.low.x, std::max(f.low.x, f.high.x - w)), f.high.y + px(4)),
                   c.muted, t.c_str());
    }
    d->AddLine(ImVec2(f.low.x, f.high.y), f.high, c.faint);
    ImGui::PopFont();
}

void draw_values(ImDrawList* d, const plot_spec& s, const frame& f) {
    for (const plot_mark& m : s.marks) {
        if (m.x < f.x_low || m.x > f.x_high) continue;
        const f32 x = f.x(m.x);
        for (f32 y = f.low.y; y < f.high.y; y += px(6))
            d->AddLine(ImVec2(x, y), ImVec2(x, std::min(y + px(3), f.high.y)), m.color, px(1.5F));
        d->AddTriangleFilled(ImVec2(x - px(4), f.low.y), ImVec2(x + px(4), f.low.y),
                             ImVec2(x, f.low.y + px(6)), m.color);
    }
    if (s.bars && !s.lines.empty()) {
        const std::vector<ImVec2>& p = s.lines[0].points;
        const f32 width = p.size() > 1 ? std::max(1.0F, f.x(p[1].x) - f.x(p[0].x) - 1) : px(6);
        for (const ImVec2& v : p)
            if (v.y > 0)
                d->AddRectFilled(ImVec2(f.x(v.x) - width / 2, f.y(v.y)),
                                 ImVec2(f.x(v.x) + width / 2, f.high.y), s.lines[0].color);
        return;
    }
    std::vector<ImVec2> at;
    const bool many = s.lines.size() > most_names && s.selected < s.lines.size();
    for (const plot_line& l : s.lines) {
        const f32 thickness = many && &l == &s.lines[s.selected] ? px(3) : many ? px(1) : px(1.6F);
        const auto draw = [&] {
            if (at.size() > 1) d->AddPolyline(at.data(), static_cast<int>(at.size()), l.color, 0, thickness);
            at.clear();
        };
        f64 last = -HUGE_VAL;
        for (const ImVec2& p : l.points) {
            if (!std::isfinite(p.y) || (s.x_gap > 0 && p.x - last > s.x_gap)) draw();
            last = p.x;
            if (p.x >= f.x_low && std::isfinite(p.y)) at.emplace_back(f.x(p.x), f.y(p.y));
        }
        draw();
    }
}

void draw_hover(ImDrawList* d, const plot_spec& s, const frame& f) {
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    if (mouse.x < f.low.x || mouse.x > f.high.x) return;
    const f64 x =
        f.x_low + static_cast<f64>((mouse.x - f.low.x) / (f.high.x - f.low.x)) * (f.x_high - f.x_low);
    d->AddLine(ImVec2(mouse.x, f.low.y), ImVec2(mouse.x, f.high.y), theme::colors().faint);
    ImGui::BeginTooltip();
    ui::small_text(s.log_x ? fmt::format("{} {}", ui::number(std::pow(10.0, x)), s.x_unit)
                           : fmt::format("{:.1f} {}", x, s.x_unit));
    for (const plot_line& l : s.lines) {
        const std::optional<f64> y = value_at(l, x, s.x_gap);
        ui::text(y ? fmt::format("{}  {} {}", l.name, ui::number(*y), s.unit)
                   : fmt::format("{}  not measured", l.name),
                 l.color);
    }
    for (const plot_mark& m : s.marks)
        if (std::abs(f.x(m.x) - mouse.x) < px(5)) ui::text(m.name, m.color);
    ImGui::EndTooltip();
}

}  // namespace

std::optional<f64> value_at(const plot_line& line, f64 x, f64 x_gap) noexcept {
    const std::vector<ImVec2>& p = line.points;
    const auto next = std::lower_bound(p.begin(), p.end(), x, [](const ImVec2& a, f64 b) { return a.x < b; });
    auto nearest = next;
    if (next == p.end() || (next != p.begin() && x - std::prev(next)->x < next->x - x)) {
        if (p.empty()) return std::nullopt;
        nearest = std::prev(next);
    }
    const bool far = x_gap > 0 && std::abs(nearest->x - x) > x_gap;
    const bool outside = x_gap <= 0 && (x < p.front().x || x > p.back().x);
    if (far || outside || !std::isfinite(nearest->y)) return std::nullopt;
    return nearest->y;
}

f64 tick_step(f64 span, int parts) noexcept {
    if (!(span > 0) || !std::isfinite(span) || parts < 1) return 1;
    const f64 rough = span / parts, power = std::pow(10.0, std::floor(std::log10(rough))),
              part = rough / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

void draw_plot(const char* name, const plot_spec& spec, ImVec2 size) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    size = ImVec2(std::max(size.x, px(40)), std::max(size.y, px(30)));
    ImGui::InvisibleButton(name, size);
    ui::mark(name);
    const bool hovered = ImGui::IsItemHovered();
    ImDrawList* d = ImGui::GetWindowDrawList();
    const f32 letter = theme::small_font()->FontSize;
    frame f{ImVec2(at.x + px(46), at.y + letter + px(9)),
            ImVec2(at.x + size.x - px(6), at.y + size.y - letter - px(7)), spec.x_low, spec.x_high, 1};
    draw_head(d, spec, at, size.x - px(4));
    if (f.high.y - f.low.y < px(16) || f.high.x - f.low.x < px(40)) return;
    ui::mark(fmt::format("{}.area", name), f.low, f.high);
    const f64 top = highest(spec),
              step = tick_step(top, std::max(2, static_cast<int>((f.high.y - f.low.y) / px(28))));
    f.y_high = std::ceil(top / step - 1e-9) * step;
    d->PushClipRect(at, ImVec2(at.x + size.x, at.y + size.y), true);
    draw_axes(d, spec, f);
    d->PushClipRect(f.low, ImVec2(f.high.x, f.high.y + 1), true);
    draw_values(d, spec, f);
    if (hovered) draw_hover(d, spec, f);
    d->PopClipRect();
    d->PopClipRect();
}

}  // namespace carousel::viewer
