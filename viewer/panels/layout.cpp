#include "viewer/panels/screen.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "viewer/panels/panel.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

constexpr std::array right{place::stages, place::rings, place::plots, place::events};

std::vector<panel*> at(std::vector<placed_panel>& panels, place where) {
    std::vector<panel*> found;
    for (placed_panel& p : panels)
        if (p.where == where) found.push_back(p.what.get());
    return found;
}

/// Returns the largest of the heights that the panels of a place request.
f32 wanted_at(std::vector<placed_panel>& panels, place where, const model& m) {
    f32 most = 0;
    for (const panel* p : at(panels, where)) most = std::max(most, p->wanted_height(m));
    return most;
}

void draw_titles(std::span<panel* const> sharing, u32& front) {
    const theme::palette& c = theme::colors();
    for (u32 k = 0; k < sharing.size(); ++k) {
        if (k > 0) ImGui::SameLine(0, px(12));
        ui::text(sharing[k]->title(), k == front ? c.text : c.muted);
        if (sharing.size() == 1) return;
        ui::mark(fmt::format("title.{}", sharing[k]->name()));
        ui::tip("D: the next one");
        if (ImGui::IsItemHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) front = k;
    }
}

// A border between two panels that the user can drag. Dragging changes `fraction`, the border's position
// within [from, to].
void border(const char* name, bool vertical, ImVec2 low, ImVec2 high, f32 from, f32 to, f32& fraction,
            f32 least, f32 most) {
    ImGui::SetCursorScreenPos(low);
    ImGui::InvisibleButton(name, ImVec2(std::max(1.0F, high.x - low.x), std::max(1.0F, high.y - low.y)));
    ui::mark(name);
    if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
        ImGui::SetMouseCursor(vertical ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
        const ImVec2 middle((low.x + high.x) / 2, (low.y + high.y) / 2);
        const ImVec2 a = vertical ? ImVec2(middle.x, low.y) : ImVec2(low.x, middle.y),
                     b = vertical ? ImVec2(middle.x, high.y) : ImVec2(high.x, middle.y);
        ImGui::GetWindowDrawList()->AddLine(a, b, theme::colors().accent, px(2));
    }
    if (ImGui::IsItemActive() && to > from) {
        const f32 moved = vertical ? ImGui::GetIO().MouseDelta.x : ImGui::GetIO().MouseDelta.y;
        fraction = std::clamp(fraction + moved / (to - from), least, most);
    }
}

}  // namespace

f32 frame_height() {
    return 2 * ImGui::GetStyle().WindowPadding.y + ImGui::GetTextLineHeightWithSpacing() + px(2);
}

void draw_panel(std::span<panel* const> sharing, u32& front, model& m, picture_store& store, ImVec2 low,
                ImVec2 high) {
    front %= static_cast<u32>(sharing.size());
    panel& p = *sharing[front];
    const ImVec2 size(std::max(px(40), high.x - low.x), std::max(px(30), high.y - low.y));
    ImGui::SetCursorScreenPos(low);
    ImGui::PushID(p.name());
    if (ImGui::BeginChild("panel", size, true,
                          ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse)) {
        const f32 right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
        draw_titles(sharing, front);
        ImGui::SameLine(0, px(16));
        const f32 left = ImGui::GetCursorScreenPos().x;
        ImGui::BeginGroup();
        if (right - left > px(60)) p.menu(m, right - left);
        ImGui::EndGroup();
        if (ImGui::BeginChild("content", ImVec2(0, 0), false)) p.draw(m, store);
        ImGui::EndChild();
    }
    ImGui::EndChild();
    ui::mark(fmt::format("panel.{}", p.name()), low, ImVec2(low.x + size.x, low.y + size.y));
    ImGui::PopID();
}

void layout::draw(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low,
                  ImVec2 high) {
    if (high.x - low.x < px(900) || high.y - low.y < px(480))
        draw_tabs(panels, m, store, low, high);
    else
        draw_columns(panels, m, store, low, high);
}

void layout::draw_columns(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low,
                          ImVec2 high) {
    settings& s = m.kept;
    const f32 gap = px(6), width = high.x - low.x, height = high.y - low.y;
    const f32 left_end = left_end_of(panels, m, height);
    const f32 middle = low.x + width * s.main_split, below = low.y + height * left_end;
    // The panel gets at least 224 interface units of width: in a narrower panel the values next to the
    // parameters' sliders would be cut off.
    const f32 foot_share = std::max(s.bottom_split, std::min(0.5F, px(224) / (middle - low.x)));
    const f32 foot = low.x + (middle - low.x) * foot_share;
    const auto show = [&](place where, f32 x0, f32 y0, f32 x1, f32 y1) {
        if (const std::vector<panel*> sharing = at(panels, where); !sharing.empty())
            draw_panel(sharing, front_[static_cast<std::size_t>(where)], m, store, ImVec2(x0, y0),
                       ImVec2(x1, y1));
    };
    show(place::image, low.x, low.y, middle - gap / 2, below - gap / 2);
    show(place::scene, low.x, below + gap / 2, foot - gap / 2, high.y);
    show(place::timeline, foot + gap / 2, below + gap / 2, middle - gap / 2, high.y);
    // The window is cleared to the colour of the panels, so only the gaps between the panels are drawn here.
    ImDrawList* d = ImGui::GetWindowDrawList();
    const auto strip = [&](f32 x0, f32 y0, f32 x1, f32 y1) {
        d->AddRectFilled(ImVec2(x0, y0), ImVec2(x1, y1), theme::colors().background);
    };
    strip(middle - gap / 2, low.y, middle + gap / 2, high.y);
    strip(low.x, below - gap / 2, middle - gap / 2, below + gap / 2);
    strip(foot - gap / 2, below + gap / 2, foot + gap / 2, high.y);
    const right_ends ends = ends_of(panels, m, height);
    for (const f32 s_k : ends)
        strip(middle + gap / 2, low.y + height * s_k - gap / 2, high.x, low.y + height * s_k + gap / 2);
    f32 y = low.y;
    for (std::size_t k = 0; k < right.size(); ++k) {
        const f32 next = k < ends.size() ? low.y + height * ends[k] : high.y + gap / 2;
        show(right[k], middle + gap / 2, y, high.x, next - gap / 2);
        y = next + gap / 2;
    }
    border("border.main", true, ImVec2(middle - gap / 2, low.y), ImVec2(middle + gap / 2, high.y), low.x,
           high.x, s.main_split, 0.15F, 0.85F);
    f32 left_moved = left_end;
    border("border.left", false, ImVec2(low.x, below - gap / 2), ImVec2(middle - gap, below + gap / 2), low.y,
           high.y, left_moved, 0.15F, 0.9F);
    if (left_moved != left_end) s.left_split = left_moved;
    f32 foot_moved = foot_share;
    border("border.foot", true, ImVec2(foot - gap / 2, below + gap), ImVec2(foot + gap / 2, high.y), low.x,
           middle, foot_moved, 0.1F, 0.9F);
    if (foot_moved != foot_share) s.bottom_split = foot_moved;
    for (std::size_t k = 0; k < ends.size(); ++k) {
        const f32 at = low.y + height * ends[k];
        const f32 least = (k == 0 ? 0.0F : ends[k - 1]) + 0.06F, most = (k == 2 ? 1.0F : ends[k + 1]) - 0.06F;
        f32 moved = ends[k];
        border(fmt::format("border.right.{}", k).c_str(), false, ImVec2(middle + gap, at - gap / 2),
               ImVec2(high.x, at + gap / 2), low.y, high.y, moved, std::min(least, most), most);
        if (moved != ends[k]) s.right_splits[k] = moved;
    }
}

// Returns the stored share. If the window's height is small, however, the scene panel gets the height that it
// requests, because the image can be made smaller.
f32 layout::left_end_of(std::vector<placed_panel>& panels, const model& m, f32 height) {
    constexpr f32 least_image = 0.5F;
    const f32 wanted = (wanted_at(panels, place::scene, m) + px(6)) / height;
    return std::min(m.kept.left_split, std::max(least_image, 1 - wanted));
}

// Returns the stored shares. If the window's height is small, however, stages and rings get a part of the
// room of plots and events. Plots and events keep a useful minimum: one row of plots, and for events what its
// panels request, between a tenth and a fifth of the height. If not all stages and rings fit, their lists
// scroll.
right_ends layout::ends_of(std::vector<placed_panel>& panels, const model& m, f32 height) {
    constexpr f32 most[] = {0.3F, 0.45F};
    const f32 least_events =
        std::clamp((wanted_at(panels, place::events, m) + px(6)) / std::max(1.0F, height), 0.1F, 0.2F);
    const f32 least_plots = std::min(0.4F, (wanted_at(panels, place::plots, m) + px(6)) / height);
    const f32 room = 1 - least_plots - least_events;  // for stages and rings
    f32 wanted[2];
    for (std::size_t k = 0; k < 2; ++k)
        wanted[k] = std::min(most[k], (wanted_at(panels, right[k], m) + px(6)) / height);
    const f32 share = std::min(1.0F, room / (wanted[0] + wanted[1]));
    right_ends ends = m.kept.right_splits;
    f32 from = 0;
    for (std::size_t k = 0; k < 2; ++k) from = ends[k] = std::max(ends[k], from + wanted[k] * share);
    ends[2] = std::max(ends[2], std::min(ends[1] + least_plots, 1 - least_events));
    return ends;
}

void layout::draw_tabs(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low,
                       ImVec2 high) {
    ImGui::SetCursorScreenPos(low);
    if (!ImGui::BeginTabBar("panels")) return;
    for (placed_panel& p : panels) {
        const int flags = p.what.get() == requested_tab_ ? ImGuiTabItemFlags_SetSelected : 0;
        if (!ImGui::BeginTabItem(p.what->title(), nullptr, flags)) {
            ui::mark(fmt::format("tab.{}", p.what->name()));
            continue;
        }
        ui::mark(fmt::format("tab.{}", p.what->name()));
        panel* const alone = p.what.get();
        u32 front = 0;
        draw_panel({&alone, 1}, front, m, store, ImGui::GetCursorScreenPos(), high);
        ImGui::EndTabItem();
    }
    ImGui::EndTabBar();
    requested_tab_ = nullptr;
}

void layout::show(const std::vector<placed_panel>& panels, std::string_view name) noexcept {
    std::array<u32, place_count> index{};
    for (const placed_panel& p : panels) {
        const auto where = static_cast<std::size_t>(p.where);
        if (p.what->name() == name) {
            front_[where] = index[where];
            requested_tab_ = p.what.get();
            return;
        }
        ++index[where];
    }
}

std::vector<placed_panel> make_panels() {
    std::vector<placed_panel> all;
    for (const panel_row& row : panel_rows) all.push_back({row.where, row.make()});
    return all;
}

}  // namespace carousel::viewer
