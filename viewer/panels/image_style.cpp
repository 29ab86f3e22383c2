#include "viewer/panels/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

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

/// Controls next to each other; one that does not fit begins a new line.
class flow {
public:
    /// To be called before each control of this width, and before its label.
    void next(f32 width) {
        if (!first_) {
            ImGui::SameLine();
            if (ImGui::GetContentRegionAvail().x < width) end_line();
        }
        if (std::exchange(first_, false)) ImGui::AlignTextToFramePadding();
    }
    void labelled(const char* label, f32 width) {
        next(ImGui::CalcTextSize(label).x + ImGui::GetStyle().ItemSpacing.x + width);
        ui::text(label, theme::colors().muted);
        ImGui::SameLine();
    }
    void end_line() {
        ImGui::NewLine();
        ++lines_;
        first_ = true;
    }
    [[nodiscard]] int lines() const noexcept { return lines_; }

private:
    bool first_ = true;
    int lines_ = 1;
};

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

void choose_plane(model& m, std::size_t which, plane_choice& of, flow& row) {
    const shown_picture* s = shown_at(m, which);
    if (s == nullptr || s->planes.empty()) return;
    row.next(px(100));
    const std::string now = of.plane.empty() ? s->plane : of.plane;
    const std::string taken =
        list(fmt::format("style.{}.plane", which), now, s->planes, px(100), "its plane  [Y]");
    if (!taken.empty() && taken != now) of.plane = taken;
}

void fix_range(picture_style& l, const picture_scale& now) {
    l.range = range_choice::fixed;
    l.low = now.low;
    l.high = now.high > now.low ? now.high : now.low + 1;
}

std::vector<std::string> with_first(const char* first, std::vector<std::string> others) {
    others.insert(others.begin(), first);
    return others;
}

void choose_channel(const shown_picture& s, std::size_t which, picture_style& l, flow& row) {
    if (s.channels.empty()) return;
    row.next(px(84));
    const bool known = std::find(s.channels.begin(), s.channels.end(), l.channel) != s.channels.end();
    const std::string taken =
        list(fmt::format("style.{}.channel", which), known ? l.channel : channel_text({}),
             with_first("all", s.channels), px(84), "all channels as red, green and blue, or one of them");
    if (!taken.empty()) read_channel(taken, l);
}

void choose_range(const shown_picture& s, std::size_t which, picture_style& l, flow& row) {
    static const std::string ranges[] = {"auto", "extremes", "fixed"};
    row.labelled("range", px(84));
    const std::string& now = ranges[static_cast<std::size_t>(l.range)];
    const std::string taken = list(fmt::format("style.{}.range", which), now, ranges, px(84),
                                   "auto: without 0.5 % of the values at either end (8 bit: the full range)\n"
                                   "extremes: from the smallest to the largest; fixed: as entered  [E]");
    if (taken == "fixed")
        fix_range(l, s.scale);
    else if (!taken.empty())
        (void)read_range(taken, l);
    if (l.range == range_choice::fixed) {
        f64 low = l.low, high = l.high;
        row.next(px(80));
        ImGui::SetNextItemWidth(px(80));
        bool changed = ImGui::InputDouble(fmt::format("##low{}", which).c_str(), &low, 0, 0, "%.6g");
        ui::mark(fmt::format("style.{}.low", which));
        row.next(px(80));
        ImGui::SetNextItemWidth(px(80));
        changed = ImGui::InputDouble(fmt::format("##high{}", which).c_str(), &high, 0, 0, "%.6g") || changed;
        ui::mark(fmt::format("style.{}.high", which));
        if (changed && low < high) {
            l.low = low;
            l.high = high;
        }
    }
}

void choose_tone_map(std::size_t which, picture_style& l, flow& row) {
    static const std::string tones[] = {"neutral", "aces", "linear"};
    row.labelled("tone map", px(84));
    const std::string taken =
        list(fmt::format("style.{}.tone", which), name_of(l.tone), tones, px(84),
             "from linear light to colours, after the exposure; linear: bright light is cut off");
    if (!taken.empty()) (void)read_tone_map(taken, l);
}

void choose_colours(model& m, std::size_t which, flow& row) {
    const shown_picture* s = shown_at(m, which);
    if (s == nullptr || !s->scale.of_values) return;
    picture_style& l = m.picture.styles.of[which];
    choose_channel(*s, which, l, row);
    if (s->scale.has_ends()) choose_range(*s, which, l, row);
    if (s->scale.colours == colour_map::light) choose_tone_map(which, l, row);
    row.labelled("colours", px(84));
    const std::string map =
        list(fmt::format("style.{}.colours", which), colours_text(l), with_first("auto", s->maps), px(84),
             "auto: by the meaning of the plane, otherwise floats in viridis and whole "
             "numbers in grey  [V]");
    if (!map.empty()) (void)read_colours(map, l);
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

f32 style_height(int lines) { return (ImGui::GetFontSize() + px(12)) * static_cast<f32>(lines); }

int draw_style(model& m) {
    if (m.snap.links.empty()) return 1;
    ImGui::PushFont(theme::small_font());
    flow row;
    row.labelled("ring", px(110));
    choose_ring(m);
    choose_plane(m, 0, m.picture.wanted.first, row);
    choose_colours(m, 0, row);
    row.labelled("second ring", px(110));
    choose_compared(m);
    if (m.picture.wanted.compare) {
        ImGui::SameLine();
        row.end_line();
        row.labelled(m.picture.wanted.compare->stage.c_str(), 0);
        choose_plane(m, 1, *m.picture.wanted.compare, row);
        choose_colours(m, 1, row);
    }
    ImGui::PopFont();
    return row.lines();
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
            if (s != nullptr) (void)read_colours(next_of(with_first("auto", s->maps), colours_text(l)), l);
            return true;
        default:
            return false;
    }
}

}  // namespace carousel::viewer
