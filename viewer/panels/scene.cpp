// Camera, light and shading: written into the control block, stamped into frames by the source.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "viewer/layout.hpp"
#include "viewer/panels/list.hpp"
#include "viewer/theme.hpp"
#include "viewer/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

constexpr std::array shadings{"lit", "normals", "triangle ids", "depth"};
constexpr f32 degree = 3.14159265F / 180.0F;

class scene_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "scene"; }
    [[nodiscard]] const char* title() const noexcept override { return "Scene"; }

    void draw(model& m, picture_store&) override {
        if (m.snap.stages.empty()) {
            ui::small_text("no run");
            return;
        }
        ImGui::PushFont(theme::small_font());
        ImGui::PushItemWidth(std::max(px(60), ImGui::GetContentRegionAvail().x - px(88)));
        shm::scene_state& s = m.scene;
        bool changed = camera(s);
        changed = light(s) || changed;
        changed = slider("spin", "scene.spin", s.spin, -0.1F, 0.1F, "%.3f rad/frame") || changed;
        changed = slider("exposure", "scene.exposure", s.exposure, 0.1F, 4.0F, "%.2f x") || changed;
        int shading = static_cast<int>(std::min<u32>(s.shading, shadings.size() - 1));
        if (ImGui::Combo("shading", &shading, shadings.data(), static_cast<int>(shadings.size()))) {
            s.shading = static_cast<u32>(shading);
            changed = true;
        }
        ui::mark("scene.shading");
        ui::tip("next one: key M");
        bool wire = s.wireframe != 0;
        if (ImGui::Checkbox("wireframe", &wire)) {
            s.wireframe = wire ? 1 : 0;
            changed = true;
        }
        ui::mark("scene.wireframe");
        ui::tip("key W");
        ImGui::SameLine();
        if (ui::button("scene.reset", "reset", "O", "camera, light and shading as at the start")) {
            s = shm::scene_state{};
            changed = true;
        }
        ImGui::PopItemWidth();
        content_ = ImGui::GetCursorPosY();
        ImGui::PopFont();
        m.scene_changed = m.scene_changed || changed;
    }

    [[nodiscard]] f32 wanted_height(const model&) const override { return frame_height() + content_; }

    void menu(model&, f32 width) override {
        if (width > px(150)) ui::small_text("drag on the image");
    }

    bool on_key(model& m, const key_press& k) override {
        if (k.ctrl || k.shift) return false;
        switch (k.key) {
            case 'M': m.scene.shading = (m.scene.shading + 1) % static_cast<u32>(shadings.size()); break;
            case 'W': m.scene.wireframe = m.scene.wireframe != 0 ? 0 : 1; break;
            case 'O': m.scene = shm::scene_state{}; break;
            default: return false;
        }
        m.scene_changed = true;
        return true;
    }

private:
    f32 content_ = 0;   ///< height of what was drawn last

    static bool slider(const char* label, const char* name, f32& value, f32 low, f32 high, const char* format) {
        const bool changed = ImGui::SliderFloat(label, &value, low, high, format);
        ui::mark(name);
        return changed;
    }
    static bool degrees(const char* label, const char* name, f32& radians, f32 low, f32 high) {
        f32 value = radians / degree;
        if (!slider(label, name, value, low, high, "%.0f deg")) return false;
        radians = value * degree;
        return true;
    }
    static bool camera(shm::scene_state& s) {
        orbit o = orbit_of(s.camera);
        bool changed = degrees("yaw", "scene.yaw", o.yaw, -180, 180);
        changed = degrees("pitch", "scene.pitch", o.pitch, -88, 88) || changed;
        changed = slider("distance", "scene.distance", o.distance, 0.5F, 20.0F, "%.2f") || changed;
        if (changed) place_camera(o, s.camera);
        return degrees("view angle", "scene.fov", s.camera.fov_y, 10, 120) || changed;
    }
    static bool light(shm::scene_state& s) {
        light_angles a = angles_of(s.light);
        bool changed = degrees("light", "scene.light", a.azimuth, -180, 180);
        changed = degrees("elevation", "scene.elevation", a.elevation, -89, 89) || changed;
        if (changed) place_light(a, s.light);
        return slider("ambient", "scene.ambient", s.ambient, 0, 1, "%.2f") || changed;
    }
};

}  // namespace

std::unique_ptr<panel> make_scene_panel() { return std::make_unique<scene_panel>(); }

}  // namespace carousel::viewer
