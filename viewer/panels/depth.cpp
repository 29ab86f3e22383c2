// The current depth of each stage: how many of its frames may be in flight, and how many frames it may be
// ahead of its readers. Next to each of these numbers, the panel shows how many places are available, and why
// this number was chosen.
#include <fmt/format.h>

#include <algorithm>

#include "viewer/panels/panel.hpp"
#include "viewer/panels/screen.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

struct depth_column {
    const char* title;
    f32 width;  // interface units; 0: stretches
    const char* help;
};
constexpr depth_column depth_columns[] = {
    {"stage", 90, "a process each"},
    {"in flight", 150, "frames in flight now / allowed now / possible"},
    {"ahead", 150, "frames since the oldest one that its readers have not finished / window / buffers"},
    {"turn", 48, "share of the last 2 s spent waiting for its turn on the GPU"},
    {"reason", 0, "basis of the choice"},
};

// Draws a bar with `room` places: the first `used` places are filled, and the first `allowed` places are
// framed.
void draw_places(u32 used, u32 allowed, u32 room, ImU32 color) {
    const theme::palette& c = theme::colors();
    const std::string text = fmt::format("{} / {} / {}", used, allowed, room);
    const f32 number = ImGui::CalcTextSize("16 / 16 / 16").x + px(6);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const f32 width = std::max(px(10), ImGui::GetContentRegionAvail().x - number),
              height = ImGui::GetFontSize() - px(2);
    ImGui::Dummy(ImVec2(width + number, height));
    ImDrawList* d = ImGui::GetWindowDrawList();
    const auto x = [&](u32 n) {
        return at.x + width * static_cast<f32>(std::min(n, room)) / static_cast<f32>(std::max(1U, room));
    };
    const f32 low = at.y + px(1), high = low + height;
    d->AddRectFilled(ImVec2(at.x, low), ImVec2(at.x + width, high), c.raised, px(2));
    d->AddRectFilled(ImVec2(at.x, low), ImVec2(x(used), high), color, px(2));
    d->AddRect(ImVec2(at.x, low), ImVec2(x(allowed), high), c.muted, px(2), 0, px(1));
    d->AddText(ImVec2(at.x + width + px(6), at.y), c.text, text.c_str());
}

class depth_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "depth"; }
    [[nodiscard]] const char* title() const noexcept override { return "Depth"; }

    void draw(model& m, picture_store&) override {
        if (m.snap.seats.empty()) {
            ui::small_text("no stages yet");
            return;
        }
        ImGui::PushFont(theme::small_font());
        const int flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY |
                          ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings;
        if (ImGui::BeginTable("depth", static_cast<int>(std::size(depth_columns)), flags,
                              ImGui::GetContentRegionAvail())) {
            draw_titles();
            follower_.begin(m.selected_seat, ImGui::GetWindowHeight());
            for (u32 seat = 0; seat < m.snap.seats.size(); ++seat) draw_row(m, seat);
            ImGui::EndTable();
        }
        ImGui::PopFont();
    }
    /// The height of the titles and three rows; further rows scroll.
    [[nodiscard]] f32 wanted_height(const model&) const override {
        return frame_height() +
               4 * (theme::small_font()->FontSize + px(2) + 2 * ImGui::GetStyle().CellPadding.y);
    }
    void menu(model&, f32) override { ui::small_text("now / allowed / room"); }

private:
    static void draw_titles() {
        ImGui::TableSetupScrollFreeze(0, 1);
        for (const depth_column& c : depth_columns)
            ImGui::TableSetupColumn(
                c.title, c.width == 0 ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed,
                c.width == 0 ? 1.0F : px(c.width));
        ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
        for (const depth_column& c : depth_columns) {
            ImGui::TableNextColumn();
            ui::text(c.title, theme::colors().muted);
            ui::tip(c.help);
        }
    }

    void draw_row(const model& m, u32 seat) const {
        const telemetry::seat_view& s = m.snap.seats[seat];
        if (s.stage >= m.snap.stages.size()) return;
        const telemetry::stage_view& stage = m.snap.stages[s.stage];
        const ImU32 color = theme::stage_color(s.stage);
        const std::string label = m.snap.seat_label(seat);
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        const f32 top = ImGui::GetCursorScreenPos().y;
        ui::text(ui::fitted(label, px(86)), color);
        const f32 row = ImGui::GetFontSize() + px(2) + 2 * ImGui::GetStyle().CellPadding.y;
        if (m.selected_seat == seat) follower_.at_row(top - px(2), top + row, row);
        ui::mark("depth.row." + label);
        ImGui::TableNextColumn();
        draw_places(s.jobs_in_flight, s.depth.lanes, stage.in_flight, color);
        ImGui::TableNextColumn();
        if (const telemetry::link_view* l = m.snap.fullest_output(s.stage)) {
            draw_places(l->ahead(), std::min(s.depth.window, l->window), static_cast<u32>(l->slots.size()),
                        color);
        } else {
            ui::text("-", theme::colors().muted);
        }
        ImGui::TableNextColumn();
        const bool known = s.stage < m.rates.stages.size() && m.rates.span_s > 0;
        ui::right_text(known ? fmt::format("{:.0f} %", m.rates.stages[s.stage].time.wait_turn * 100) : "-",
                       theme::colors().muted);
        ImGui::TableNextColumn();
        const std::string why = s.depth.reason();
        ui::text(ui::fitted(why.empty() ? "not known yet" : why, ImGui::GetContentRegionAvail().x),
                 theme::colors().muted);
        ui::tip(why);
    }

    ui::row_follower follower_;
};

}  // namespace

std::unique_ptr<panel> make_depth_panel() { return std::make_unique<depth_panel>(); }

}  // namespace carousel::viewer
