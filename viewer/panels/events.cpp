// The events of the run, with the newest event last and the age of each event.

#include "viewer/panels/panel.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

class events_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "events"; }
    [[nodiscard]] const char* title() const noexcept override { return "Events"; }

    void draw(model& m, picture_store&) override {
        const auto& events = m.events.events();
        if (events.empty()) {
            ui::small_text("no events yet: deaths, restarts and replies to commands are listed here");
            return;
        }
        ImGui::PushFont(theme::small_font());
        const f32 age_width = ImGui::CalcTextSize("59 min 59 s").x;
        for (const telemetry::run_event& e : events) draw_line(m, e, age_width);
        ImGui::PopFont();
        const bool end_seen = ImGui::IsRectVisible(ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
        if (end_seen) ui::mark("events.end");
        follow();
    }
    void menu(model& m, f32) override {
        ui::small_text(m.events.events().empty() ? "" : "age · what happened");
    }

private:
    static void draw_line(const model& m, const telemetry::run_event& e, f32 age_width) {
        const std::string age =
            e.time_ns <= m.now_ns ? ui::duration(static_cast<f64>(m.now_ns - e.time_ns) / 1e9) : "now";
        const ImVec2 at = ImGui::GetCursorScreenPos();
        ImDrawList* d = ImGui::GetWindowDrawList();
        d->AddText(ImVec2(at.x + age_width - ImGui::CalcTextSize(age.c_str()).x, at.y), theme::colors().muted,
                   age.c_str());
        d->AddCircleFilled(ImVec2(at.x + age_width + theme::px(12), at.y + ImGui::GetFontSize() * 0.55F),
                           ImGui::GetFontSize() * 0.22F, theme::event_color(e.kind));
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() + age_width + theme::px(22));
        const bool loud = e.kind == telemetry::event_kind::bad || e.kind == telemetry::event_kind::warning;
        ImGui::PushTextWrapPos(0);
        ui::text(e.text, loud ? theme::event_color(e.kind) : theme::colors().text);
        ImGui::PopTextWrapPos();
    }
    // Keeps the newest line visible, except while the user has scrolled up from the end. A change of position
    // is treated as scrolling by the user only if the end has not moved: if the panel is resized or lines are
    // wrapped differently, the end moves too.
    void follow() {
        const f32 y = ImGui::GetScrollY(), end = ImGui::GetScrollMaxY();
        if (end == end_ && y < y_ - 0.5F) following_ = false;
        if (y >= end - theme::px(4)) following_ = true;
        if (following_) ImGui::SetScrollHereY(1.0F);
        y_ = y;
        end_ = end;
    }
    f32 y_ = 0, end_ = 0;
    bool following_ = true;
};

}  // namespace

std::unique_ptr<panel> make_events_panel() { return std::make_unique<events_panel>(); }

}  // namespace carousel::viewer
