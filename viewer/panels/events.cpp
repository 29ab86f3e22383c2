// The events of the run, with the newest event last and the age of each event, and a search in them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "viewer/panels/event_filter.hpp"
#include "viewer/panels/panel.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

class events_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "events"; }
    [[nodiscard]] const char* title() const noexcept override { return "Events"; }

    void attach(const model&) override { clear_ = true; }

    void draw(model& m, picture_store&) override {
        const auto& events = m.events.events();
        if (events.empty()) {
            ui::small_text("no events yet: deaths, restarts and replies to commands are listed here");
            return;
        }
        ImGui::PushFont(theme::small_font());
        const f32 age_width = ImGui::CalcTextSize("59 min 59 s").x;
        for (const telemetry::run_event& e : events)
            if (is_found(m, e)) draw_line(m, e, age_width);
        if (count_found(m) == 0) {
            ui::text(ui::fitted(fmt::format("no event contains \"{}\"; Esc clears the search", query_.data()),
                                ImGui::GetContentRegionAvail().x),
                     theme::colors().muted);
            ui::mark("events.none");
        }
        ImGui::PopFont();
        const bool end_seen = ImGui::IsRectVisible(ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
        if (end_seen) ui::mark("events.end");
        follow();
    }
    void menu(model& m, f32 width) override {
        if (m.events.events().empty()) return;
        ImGui::PushFont(theme::small_font());
        ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(5), 0));
        const std::string count = fmt::format("{} of {}", count_found(m), m.events.events().size());
        const f32 room = width - ImGui::CalcTextSize(count.c_str()).x - px(14);
        if (room > px(60)) {
            draw_field(std::min(room, px(240)));
            ImGui::SameLine(0, px(8));
        }
        ui::text(count, *query_.data() != '\0' ? theme::colors().text : theme::colors().muted);
        ui::mark(fmt::format("events.count.{}", count));
        ImGui::PopStyleVar();
        ImGui::PopFont();
    }

    bool on_key(model&, const key_press& k) override {
        if (k.key == key::escape) {
            clear_ = true;
            return *query_.data() != '\0';
        }
        if (!is_search_key(k)) return false;
        focus_ = true;
        return true;
    }

private:
    [[nodiscard]] bool is_found(const model& m, const telemetry::run_event& e) const {
        return *query_.data() == '\0' ||
               event_matches(query_.data(), e.stage != shm::none ? m.snap.stage_name(e.stage) : "", e.text);
    }
    [[nodiscard]] std::size_t count_found(const model& m) const {
        return static_cast<std::size_t>(
            std::count_if(m.events.events().begin(), m.events.events().end(),
                          [&](const telemetry::run_event& e) { return is_found(m, e); }));
    }

    // A field that the user is typing into, or that Esc ends, writes its own text into the array. So the
    // cleared field is another one, with another id.
    void draw_field(f32 width) {
        if (std::exchange(clear_, false)) {
            query_.fill('\0');
            ++field_;
        }
        if (std::exchange(focus_, false)) ImGui::SetKeyboardFocusHere();
        ImGui::SetNextItemWidth(width);
        ImGui::PushID(field_);
        ImGui::InputTextWithHint("##search", "search", query_.data(), query_.size());
        ImGui::PopID();
        ui::mark("events.search");
        ui::tip(
            "show only events that contain all these words, in the text or the stage's name  [Ctrl+F, /]");
    }

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
    std::array<char, 128> query_{};       ///< the words to search for, 0-terminated
    int field_ = 0;                       ///< id of the field
    bool focus_ = false, clear_ = false;  ///< requested by a key for the next frame
};

}  // namespace

std::unique_ptr<panel> make_events_panel() { return std::make_unique<events_panel>(); }

}  // namespace carousel::viewer
