#include "viewer/panels/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

std::vector<std::string> rings_of(const model& m) {
    std::vector<std::string> out;
    for (const telemetry::link_view& l : m.snap.links) out.push_back(l.name);
    return out;
}

const shown_picture* shown_at(const model& m, std::size_t which) {
    return which < m.picture.shown.size() ? &m.picture.shown[which] : nullptr;
}

/// A drop-down list. Returns the line that the user has chosen, or "". Tests find the list and its lines by
/// `name`.
std::string list(const std::string& name, const std::string& now, std::span<const std::string> lines,
                 f32 width, const char* help) {
    std::string taken;
    ImGui::SetNextItemWidth(width);
    const bool open = ImGui::BeginCombo(("##" + name).c_str(), now.c_str(), ImGuiComboFlags_HeightLarge);
    if (!open) {
        ui::mark(name);
        ui::tip(help);
        return taken;
    }
    for (const std::string& line : lines) {
        if (ImGui::Selectable(line.c_str(), line == now)) taken = line;
        ui::mark(name + "." + line);
    }
    ImGui::EndCombo();
    return taken;
}

constexpr const char* no_ring = "none";

void choose_ring(model& m) {
    const shown_picture* s = shown_at(m, 0);
    const std::string now = !m.picture.wanted.first.stage.empty() ? m.picture.wanted.first.stage
                            : s != nullptr                        ? s->stage
                                                                  : "last ring";
    const std::string taken = list("style.ring", now, rings_of(m), px(110), "the ring that is shown  [U]");
    if (!taken.empty() && taken != now) m.picture.wanted.first = {taken, ""};
}

void choose_compared(model& m) {
    std::vector<std::string> rings = rings_of(m);
    rings.insert(rings.begin(), no_ring);
    std::optional<plane_choice>& compared = m.picture.wanted.compare;
    const std::string now = compared ? compared->stage : no_ring;
    const std::string taken =
        list("style.compare", now, rings, px(110), "the same frame in another ring, shown on the right  [B]");
    if (taken.empty() || taken == now) return;
    if (taken == no_ring)
        compared.reset();
    else
        compared = plane_choice{taken, ""};
}

void choose_plane(model& m, std::size_t which, plane_choice& of) {
    const shown_picture* s = shown_at(m, which);
    if (s == nullptr || s->planes.empty()) return;
    const std::string now = of.plane.empty() ? s->plane : of.plane;
    const std::string taken =
        list(fmt::format("style.{}.plane", which), now, s->planes, px(100), "its plane  [Y]");
    if (!taken.empty() && taken != now) of.plane = taken;
    ImGui::SameLine();
}

void fix_range(picture_style& l, const picture_scale& now) {
    l.range = range_choice::fixed;
    l.low = now.low;
    l.high = now.high > now.low ? now.high : now.low + 1;
}

void choose_colours(model& m, std::size_t which) {
    const shown_picture* s = shown_at(m, which);
    if (s == nullptr || !s->scale.of_values) return;
    picture_style& l = m.picture.styles.of[which];
    static const std::string ranges[] = {"auto", "extremes", "fixed"}, maps[] = {"auto", "grey", "viridis"};
    ui::text("range", theme::colors().muted);
    ImGui::SameLine();
    const std::string& now = ranges[static_cast<std::size_t>(l.range)];
    const std::string taken = list(fmt::format("style.{}.range", which), now, ranges, px(84),
                                   "auto: without 0.5 % of the values at either end (8 bit: the full range)\n"
                                   "extremes: from the smallest to the largest; fixed: as entered  [E]");
    if (taken == "fixed")
        fix_range(l, s->scale);
    else if (!taken.empty())
        (void)read_range(taken, l);
    if (l.range == range_choice::fixed) {
        f64 low = l.low, high = l.high;
        ImGui::SameLine();
        ImGui::SetNextItemWidth(px(80));
        bool changed = ImGui::InputDouble(fmt::format("##low{}", which).c_str(), &low, 0, 0, "%.6g");
        ui::mark(fmt::format("style.{}.low", which));
        ImGui::SameLine();
        ImGui::SetNextItemWidth(px(80));
        changed = ImGui::InputDouble(fmt::format("##high{}", which).c_str(), &high, 0, 0, "%.6g") || changed;
        ui::mark(fmt::format("style.{}.high", which));
        if (changed && low < high) {
            l.low = low;
            l.high = high;
        }
    }
    ImGui::SameLine();
    ui::text("colours", theme::colors().muted);
    ImGui::SameLine();
    const std::string map = list(fmt::format("style.{}.colours", which), colours_text(l), maps, px(84),
                                 "auto: floats in viridis, whole numbers in grey  [V]");
    if (!map.empty()) (void)read_colours(map, l);
    ImGui::SameLine();
}

template <typename T>
T next_of(const std::vector<T>& all, const T& now) {
    const auto at = std::find(all.begin(), all.end(), now);
    return at == all.end() || at + 1 == all.end() ? all.front() : *(at + 1);
}

void next_compared(model& m) {
    std::vector<std::string> rings = rings_of(m);
    rings.insert(rings.begin(), no_ring);
    std::optional<plane_choice>& compared = m.picture.wanted.compare;
    const std::string next = next_of(rings, compared ? compared->stage : std::string(no_ring));
    compared = next == no_ring ? std::nullopt : std::optional(plane_choice{next, ""});
}

}  // namespace

f32 style_height(const model& m) {
    return (ImGui::GetFontSize() + px(12)) * (m.picture.wanted.compare ? 2.0F : 1.0F);
}

void draw_style(model& m) {
    if (m.snap.links.empty()) return;
    ImGui::PushFont(theme::small_font());
    ImGui::AlignTextToFramePadding();
    ui::text("ring", theme::colors().muted);
    ImGui::SameLine();
    choose_ring(m);
    ImGui::SameLine();
    choose_plane(m, 0, m.picture.wanted.first);
    choose_colours(m, 0);
    ui::text("second ring", theme::colors().muted);
    ImGui::SameLine();
    choose_compared(m);
    if (m.picture.wanted.compare) {
        ImGui::AlignTextToFramePadding();
        ui::text(m.picture.wanted.compare->stage, theme::colors().muted);
        ImGui::SameLine();
        choose_plane(m, 1, *m.picture.wanted.compare);
        choose_colours(m, 1);
        ImGui::NewLine();
    }
    ImGui::PopFont();
}

bool style_key(model& m, const key_press& k) {
    if (k.ctrl || k.shift) return false;
    picture_model& p = m.picture;
    picture_style& l = p.styles.of[0];
    const shown_picture* s = shown_at(m, 0);
    const std::vector<std::string> rings = rings_of(m);
    switch (k.key) {
        case 'U':
            if (!rings.empty()) p.wanted.first = {next_of(rings, s != nullptr ? s->stage : ""), ""};
            return true;
        case 'Y':
            if (s != nullptr && !s->planes.empty()) p.wanted.first.plane = next_of(s->planes, s->plane);
            return true;
        case 'B':
            next_compared(m);
            return true;
        case 'E':
            if (l.range == range_choice::extremes && s != nullptr)
                fix_range(l, s->scale);
            else
                (void)read_range(l.range == range_choice::automatic ? "extremes" : "auto", l);
            return true;
        case 'V':
            (void)read_colours(next_of<std::string>({"auto", "grey", "viridis"}, colours_text(l)), l);
            return true;
        default:
            return false;
    }
}

}  // namespace carousel::viewer
