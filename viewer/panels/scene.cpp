// The parameters that can be set during the run, with one control for each field of the parameter schema. The
// supervisor applies the changes.
#include <algorithm>

#include "viewer/panels/panel.hpp"
#include "viewer/panels/parts.hpp"
#include "viewer/panels/screen.hpp"
#include "viewer/session/camera.hpp"
#include "viewer/session/parameter_values.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using ring::parameter_kind;
using theme::px;

const ring::parameter* first_shown(const model& m, parameter_kind kind) {
    for (const ring::parameter& p : m.schema.fields)
        if (p.kind == kind && is_shown(p)) return &p;
    return nullptr;
}

class scene_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "scene"; }
    [[nodiscard]] const char* title() const noexcept override { return "Scene"; }

    void attach(const model&) override { typed_ = {}; }

    void draw(model& m, picture_store&) override {
        const bool runs = !m.snap.stages.empty();
        if (!runs || !m.has_parameters()) {
            ui::small_text(runs ? "no parameters" : "no run");
            ui::mark("scene.none");
        } else {
            ImGui::PushFont(theme::small_font());
            ImGui::PushItemWidth(std::max(px(60), ImGui::GetContentRegionAvail().x - px(88)));
            ImGui::BeginGroup();
            ImGui::BeginDisabled(m.read_only);
            draw_parameters(m);
            ImGui::EndDisabled();
            ImGui::EndGroup();
            if (m.read_only) ui::tip(read_only_text);
            ImGui::PopItemWidth();
            draw_settings(m);
            ImGui::PopFont();
        }
        content_ = ImGui::GetCursorPosY();
    }

    [[nodiscard]] f32 wanted_height(const model&) const override { return frame_height() + content_; }

    void menu(model& m, f32 width) override {
        if (m.read_only && m.has_parameters())
            ui::small_text(ui::fitted("read-only", width));
        else if (width > px(150) && m.has_parameters() && camera_of(m.schema, m.values))
            ui::small_text("drag on the image");
    }

    bool on_key(model& m, const key_press& k) override {
        if (k.ctrl || k.shift || m.read_only || !m.has_parameters()) return false;
        switch (k.key) {
            case 'M':
                return turn_on(m, parameter_kind::choice);
            case 'W':
                return turn_on(m, parameter_kind::flag);
            case 'O':
                m.reset_values = true;
                return true;
            default:
                return false;
        }
    }

private:
    f32 content_ = 0;  ///< height of the content when it was last drawn
    typed_row typed_;

    void draw_parameters(model& m) {
        bool changed = draw_camera(m), beside = false;
        const ring::parameter *choice = first_shown(m, parameter_kind::choice),
                              *flag = first_shown(m, parameter_kind::flag);
        for (const ring::parameter& p : m.schema.fields) {
            if (!is_shown(p)) continue;
            const char* key = &p == choice ? "next: key M" : &p == flag ? "key W" : "";
            changed = draw_parameter(p, m.values, key, typed_) || changed;
            beside = p.kind == parameter_kind::flag;
        }
        if (beside) ImGui::SameLine();
        if (ui::button("scene.reset", "reset", "O", "reset everything to its initial value"))
            m.reset_values = true;
        m.values_changed = m.values_changed || changed;
    }

    // Draws the keys of the selected stage, which only a restart changes.
    static void draw_settings(const model& m) {
        const std::string stage = m.selected_seat < m.snap.seats.size()
                                      ? m.snap.stage_name(m.snap.seats[m.selected_seat].stage)
                                      : "";
        const auto of = m.settings_of.find(stage);
        if (of == m.settings_of.end()) return;
        ui::text(stage, theme::colors().text);
        ui::tip("the keys of the selected stage in the pipeline file; `carousel reload` changes them");
        ui::mark("scene.settings");
        for (const auto& [key, value] : of->second) {
            const std::string line = key + "  " + value;
            ui::text(ui::fitted(line, ImGui::GetContentRegionAvail().x), theme::colors().muted);
            ui::tip(line);
        }
    }

    // Draws controls for the camera's orbit, which the mouse also turns. The other fields of the camera have
    // no controls.
    static bool draw_camera(model& m) {
        std::optional<camera> c = camera_of(m.schema, m.values);
        if (!c) return false;
        orbit o = orbit_of(*c);
        bool changed = degrees_slider("yaw", "scene.yaw", o.yaw, -180, 180);
        changed = degrees_slider("pitch", "scene.pitch", o.pitch, -88, 88) || changed;
        changed = number_slider("distance", "scene.distance", o.distance, 0.5F, 20.0F, "%.2f") || changed;
        if (!changed) return false;
        place_camera(o, *c);
        put_camera(*c, m.schema, m.values);
        return true;
    }

    // Selects the next choice, or toggles a switch. Returns false if there is no such field.
    static bool turn_on(model& m, parameter_kind kind) {
        const ring::parameter* p = first_shown(m, kind);
        if (p == nullptr) return false;
        const f64 next = number_in(*p, m.values) + 1;
        const f64 states = kind == parameter_kind::flag ? 2 : static_cast<f64>(p->choices.size());
        put_number(*p, m.values, 0, next < states ? next : 0);
        m.values_changed = true;
        return true;
    }
};

}  // namespace

std::unique_ptr<panel> make_scene_panel() { return std::make_unique<scene_panel>(); }

}  // namespace carousel::viewer
