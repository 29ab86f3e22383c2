// The frames in progress, oldest first: for each frame the stage in which it is, and the time for which it
// has been there. A frame that holds up the run is the first row.
#include <fmt/format.h>

#include <algorithm>

#include "viewer/panels/panel.hpp"
#include "viewer/panels/screen.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

struct frames_column {
    const char* title;
    f32 width;  // interface units; 0: stretches
    const char* help;
};
constexpr frames_column frames_columns[] = {
    {"frame", 70, "position in the stage's rings"},
    {"stage", 90, "the process that works on it"},
    {"where", 110,
     "begun: leased; process: in process(); submitted: on the device, in finish() or waits for its turn "
     "there"},
    {"since", 70, "time there"},
    {"", 0, ""},
};
constexpr u64 late_ns = 1'000'000'000;  ///< if the time is longer than this, it is marked

struct place_of_frame {
    const char* where;
    u64 since_ns;  ///< 0: not known
};

place_of_frame place_of(const telemetry::job_view& j) {
    if (j.submitted_since_ns != 0) return {"submitted", j.submitted_since_ns};
    if (j.process_since_ns != 0) return {"process", j.process_since_ns};
    return {"begun", 0};
}

class frames_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "frames"; }
    [[nodiscard]] const char* title() const noexcept override { return "Frames"; }

    void draw(model& m, picture_store&) override {
        if (m.snap.jobs.empty()) {
            ui::small_text("no frame is in progress");
            return;
        }
        ImGui::PushFont(theme::small_font());
        const int flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY |
                          ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings;
        if (ImGui::BeginTable("frames", static_cast<int>(std::size(frames_columns)), flags,
                              ImGui::GetContentRegionAvail())) {
            draw_titles();
            order(m.snap.jobs);
            for (const telemetry::job_view* j : ordered_) draw_row(m, *j);
            ImGui::EndTable();
        }
        ImGui::PopFont();
    }
    /// The height of the titles and three rows; further rows scroll.
    [[nodiscard]] f32 wanted_height(const model&) const override {
        return frame_height() +
               4 * (theme::small_font()->FontSize + px(2) + 2 * ImGui::GetStyle().CellPadding.y);
    }
    void menu(model& m, f32) override { ui::small_text(fmt::format("{} in progress", m.snap.jobs.size())); }

private:
    void order(const std::vector<telemetry::job_view>& jobs) {
        ordered_.clear();
        for (const telemetry::job_view& j : jobs) ordered_.push_back(&j);
        std::stable_sort(ordered_.begin(), ordered_.end(),
                         [](const auto* a, const auto* b) { return a->ring_sequence < b->ring_sequence; });
    }

    static void draw_titles() {
        ImGui::TableSetupScrollFreeze(0, 1);
        for (const frames_column& c : frames_columns)
            ImGui::TableSetupColumn(
                c.title, c.width == 0 ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed,
                c.width == 0 ? 1.0F : px(c.width));
        ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
        for (const frames_column& c : frames_columns) {
            ImGui::TableNextColumn();
            ui::text(c.title, theme::colors().muted);
            if (*c.help != 0) ui::tip(c.help);
        }
    }

    static void draw_row(const model& m, const telemetry::job_view& j) {
        const theme::palette& c = theme::colors();
        const place_of_frame at = place_of(j);
        const u64 now = m.snap.taken_ns, age = at.since_ns != 0 && now > at.since_ns ? now - at.since_ns : 0;
        const std::string label = m.snap.seat_label(j.seat);
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        ui::right_text(fmt::format("{}", j.ring_sequence), c.text);
        ImGui::TableNextColumn();
        ui::text(ui::fitted(label, px(86)), theme::stage_color(j.stage));
        ui::mark(fmt::format("frames.row.{}.{}", label, j.ring_sequence));
        ImGui::TableNextColumn();
        ui::text(at.where, c.muted);
        ImGui::TableNextColumn();
        ui::right_text(at.since_ns != 0 ? telemetry::describe_span(age) : "-",
                       age >= late_ns ? c.bad : c.text);
    }

    std::vector<const telemetry::job_view*> ordered_;  ///< reused; valid within one draw()
};

}  // namespace

std::unique_ptr<panel> make_frames_panel() { return std::make_unique<frames_panel>(); }

}  // namespace carousel::viewer
