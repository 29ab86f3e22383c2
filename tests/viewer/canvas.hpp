#pragma once
// A window for tests: draws a model on it, as the viewer does.

#include <imgui.h>

#include <cfloat>
#include <cmath>
#include <memory>

#include "viewer/panels/screen.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::test {

struct canvas {
    std::unique_ptr<viewer::window> window;
    std::unique_ptr<viewer::picture_store> store;
    viewer::screen screen;
    f32 scale = 1;

    explicit canvas(bool gl, int width = 1920, int height = 1080, f32 wanted_scale = 1)
        : scale(wanted_scale) {
        ImGui::CreateContext();
        ImGui::GetIO().IniFilename = nullptr;
        viewer::window_options o;
        o.width = width;
        o.height = height;
        try {
            window = gl ? viewer::make_offscreen_window(o) : viewer::make_null_window(o);
        } catch (...) {
            ImGui::DestroyContext();
            throw;
        }
        viewer::theme::load_fonts(scale);
        store = gl ? viewer::make_gl_store() : viewer::make_null_store();
    }
    ~canvas() {
        store.reset();
        window.reset();
        ImGui::DestroyContext();
    }
    canvas(const canvas&) = delete;
    canvas& operator=(const canvas&) = delete;

    void draw(viewer::model& m, int frames = 2, ImVec2 mouse = ImVec2(-FLT_MAX, -FLT_MAX), f32 wheel = 0) {
        for (int k = 0; k < frames; ++k) {
            viewer::theme::apply(m.kept.dark, scale);
            ImGui::GetIO().MousePos = mouse;
            ImGui::GetIO().MouseWheel = wheel;
            (void)window->begin_frame();
            screen.draw(m, *store, "test");
            ImGui::Render();
            window->end_frame(ImGui::GetDrawData(), store->version());
        }
    }
    /// Clicks in the middle of a widget. Returns false if the last frame had no such widget.
    [[nodiscard]] bool click(viewer::model& m, const std::string& name) {
        const viewer::ui::widget* at = find(name);
        if (at == nullptr) return false;
        const ImVec2 mouse(at->x + at->width / 2, at->y + at->height / 2);
        draw(m, 1, mouse);
        ImGui::GetIO().MouseDown[0] = true;
        draw(m, 1, mouse);
        ImGui::GetIO().MouseDown[0] = false;
        draw(m, 1, mouse);
        return true;
    }
    /// Of an invalid window.
    void resize(int width, int height) {
        viewer::window_options o;
        o.width = width;
        o.height = height;
        window = viewer::make_null_window(o);
    }
    /// Frames with the mouse there; the wheel turns in the first of them.
    void draw_with_mouse(viewer::model& m, ImVec2 mouse, f32 wheel = 0) {
        for (int k = 0; k < 3; ++k) draw(m, 1, mouse, k == 1 ? wheel : 0);
    }
    /// Vertices that the last frame drew.
    [[nodiscard]] static int vertices() { return ImGui::GetDrawData()->TotalVtxCount; }
    /// No vertex has NaN coordinates.
    [[nodiscard]] static bool sane() {
        const ImDrawData* d = ImGui::GetDrawData();
        for (int l = 0; l < d->CmdListsCount; ++l)
            for (const ImDrawVert& v : d->CmdLists[l]->VtxBuffer)
                if (!std::isfinite(v.pos.x) || !std::isfinite(v.pos.y)) return false;
        return true;
    }
    [[nodiscard]] static const viewer::ui::widget* find(const std::string& name) {
        for (const viewer::ui::widget& w : viewer::ui::marks())
            if (w.name == name) return &w;
        return nullptr;
    }
};

}  // namespace carousel::test
