// The newest complete frame, its path to the screen, and the last crash.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/clock.hpp"
#include "viewer/panels/panel.hpp"
#include "viewer/panels/parts.hpp"
#include "viewer/session/camera.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

class image_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "image"; }
    [[nodiscard]] const char* title() const noexcept override { return "Image"; }

    void draw(model& m, picture_store& store) override {
        const f32 line = ImGui::GetFontSize() + px(12) + style_height(style_lines_);
        m.picture.pointer.reset();
        const ImVec2 at = ImGui::GetCursorScreenPos(), space = ImGui::GetContentRegionAvail();
        const ImVec2 size(std::max(px(20), space.x), std::max(px(20), space.y - line));
        ImGui::InvisibleButton("picture", size,
                               ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight |
                                   ImGuiButtonFlags_MouseButtonMiddle);
        ui::mark("image.area");
        ImDrawList* d = ImGui::GetWindowDrawList();
        const ImVec2 end(at.x + size.x, at.y + size.y);
        d->PushClipRect(at, end, true);
        const bool shown = draw_picture(m, store, d, at, size);
        draw_surround(d, at, end, shown);
        if (!shown) draw_reason(m, d, at, size);
        if (shown) draw_notes(m.picture, {low_, high_, at, end}, d);
        draw_banner(m, d, at, size);
        if (shown) steer(m, store, at, size);
        draw_picked(d, at, end);
        d->PopClipRect();
        draw_tools(m);
        style_lines_ = draw_style(m);
    }

    void menu(model& m, f32 width) override {
        const picture_model& p = m.picture;
        if (p.width == 0) return;
        std::string text =
            fmt::format("{} · frame {} · {} x {}", p.stage, p.ring_sequence, p.width, p.height);
        if (width > px(520))
            text += fmt::format(" · {} · {} ms per frame", p.path, ui::number(p.copy_ms + p.show_ms));
        ImGui::PushFont(theme::small_font());
        ui::text(ui::fitted(text, width), theme::colors().muted);
        ui::tip(fmt::format(
            "transfer of the picture: {}\ncopied from the ring in {} ms, into the texture in {} "
            "ms\ndiscarded frames: {} revoked, {} torn; tombstones: {}",
            p.path, ui::number(p.copy_ms), ui::number(p.show_ms), p.revoked, p.torn, p.tombstones));
        ImGui::PopFont();
    }

    bool on_key(model& m, const key_press& k) override {
        picture_model& p = m.picture;
        if (k.ctrl) return false;
        if (style_key(m, k)) return true;
        if (k.shift) {
            switch (k.key) {
                case 'R':
                    p.red = !p.red;
                    return true;
                case 'G':
                    p.green = !p.green;
                    return true;
                case 'B':
                    p.blue = !p.blue;
                    return true;
                case 'A':
                    p.alpha = !p.alpha;
                    return true;
                case 'P':
                    p.save_frame = true;
                    return true;
                default:
                    return false;
            }
        }
        switch (k.key) {
            case ' ':
                p.paused = !p.paused;
                return true;
            case '.':
                p.paused = p.step = true;
                return true;
            case 'F':
                fit(p);
                return true;
            case '0':
                p.zoom = 1;
                p.pan_x = p.pan_y = 0;
                return true;
            case '=':
                zoom_by(p, 1.25F);
                return true;
            case '-':
                zoom_by(p, 0.8F);
                return true;
            case '[':
                expose(p, p.exposure_stops - 0.5F);
                return true;
            case ']':
                expose(p, p.exposure_stops + 0.5F);
                return true;
            case key::left:
                p.pan_x += px(40);
                return true;
            case key::right:
                p.pan_x -= px(40);
                return true;
            case key::up:
                p.pan_y += px(40);
                return true;
            case key::down:
                p.pan_y -= px(40);
                return true;
            default:
                return false;
        }
    }

private:
    static constexpr f32 exposure_limit = 10;
    /// If light is shown, its values are multiplied before the tone map; otherwise the finished picture is
    /// made brighter.
    static void expose(picture_model& p, f32 stops) {
        p.exposure_stops = std::clamp(stops, -exposure_limit, exposure_limit);
        for (picture_style& style : p.styles.of) style.exposure = f64{p.exposure_stops};
    }
    static bool shows_light(const picture_model& p) {
        return std::any_of(p.shown.begin(), p.shown.end(), [](const shown_picture& s) {
            return s.scale.of_values && s.scale.colours == colour_map::light;
        });
    }
    static void fit(picture_model& p) { p.zoom = p.pan_x = p.pan_y = 0; }
    void zoom_by(picture_model& p, f32 factor) const {
        const f32 before = p.zoom > 0 ? p.zoom : fit_zoom_;
        p.zoom = std::clamp(before * factor, 0.02F, 64.0F);
        p.pan_x *= p.zoom / before;
        p.pan_y *= p.zoom / before;
    }

    bool draw_picture(model& m, picture_store& store, ImDrawList* d, ImVec2 at, ImVec2 size) {
        picture_model& p = m.picture;
        if (p.width == 0 || p.height == 0) return false;
        fit_zoom_ = std::min(size.x / static_cast<f32>(p.width), size.y / static_cast<f32>(p.height));
        const f32 zoom = p.zoom > 0 ? p.zoom : fit_zoom_;
        const f32 stops = shows_light(p) ? 0 : p.exposure_stops;
        void* texture = store.shown({p.red, p.green, p.blue, p.alpha, stops, zoom < 0.5F});
        if (texture == nullptr && store.has_gl()) return false;
        low_ = ImVec2(std::round(at.x + size.x / 2 + p.pan_x - zoom * static_cast<f32>(p.width) / 2),
                      std::round(at.y + size.y / 2 + p.pan_y - zoom * static_cast<f32>(p.height) / 2));
        high_ = ImVec2(low_.x + zoom * static_cast<f32>(p.width), low_.y + zoom * static_cast<f32>(p.height));
        if (texture != nullptr) d->AddImage((ImTextureID)(intptr_t)texture, low_, high_);
        return true;
    }

    // Fills only the area around the picture: if GL runs in software, filling a pixel twice takes twice the
    // time.
    void draw_surround(ImDrawList* d, ImVec2 at, ImVec2 end, bool shown) const {
        constexpr ImU32 color = IM_COL32(8, 9, 11, 255);
        if (!shown) return d->AddRectFilled(at, end, color);
        const ImVec2 low(std::clamp(low_.x, at.x, end.x), std::clamp(low_.y, at.y, end.y)),
            high(std::clamp(high_.x, at.x, end.x), std::clamp(high_.y, at.y, end.y));
        d->AddRectFilled(at, ImVec2(end.x, low.y), color);
        d->AddRectFilled(ImVec2(at.x, high.y), end, color);
        d->AddRectFilled(ImVec2(at.x, low.y), ImVec2(low.x, high.y), color);
        d->AddRectFilled(ImVec2(high.x, low.y), ImVec2(end.x, high.y), color);
    }

    static void draw_reason(const model& m, ImDrawList* d, ImVec2 at, ImVec2 size) {
        std::string text = m.picture.problem;
        if (text.empty())
            text = m.phase == run_phase::waiting ? "no pipeline is running" : "waiting for the first frame";
        const f32 width = std::max(px(60), size.x * 0.8F);
        const ImVec2 box = ImGui::CalcTextSize(text.c_str(), nullptr, false, width);
        d->AddText(ImGui::GetFont(), ImGui::GetFontSize(),
                   ImVec2(at.x + (size.x - box.x) / 2, at.y + (size.y - box.y) / 2),
                   IM_COL32(150, 160, 175, 255), text.c_str(), nullptr, width);
    }

    // Draws which stage has crashed, how it died, and when it came back. The text is shown until some seconds
    // after the stage is back.
    static void draw_banner(const model& m, ImDrawList* d, ImVec2 at, ImVec2 size) {
        std::string text;
        ImU32 color = theme::colors().bad;
        if (const auto& c = m.events.last_crash(); c && m.phase == run_phase::watching) {
            const f64 age_s = (static_cast<f64>(m.now_ns) - static_cast<f64>(c->back_ns)) / 1e9;
            const std::string process = telemetry::describe(*c);
            if (c->back_ns == 0) {
                const seat_report* r = m.report_of(c->seat);
                text =
                    fmt::format("{}; showing the last valid frame, {}", process,
                                telemetry::describe_vacancy(*c, r != nullptr ? r->state.value_or("") : ""));
            } else if (age_s < 6) {
                text = fmt::format("{}; back as pid {} after {}", process, c->new_pid,
                                   telemetry::describe_span(c->back_ns - c->died_ns));
                color = theme::colors().good;
            }
        }
        if (text.empty() && m.picture.paused) {
            text = "paused  (space continues, . shows the next frame)";
            color = theme::colors().warning;
        }
        if (m.phase == run_phase::ended) {
            text = fmt::format("{}; this is its last frame  (press N to watch another run)",
                               m.ending.empty() ? m.run.name + " has ended" : m.ending);
            color = theme::colors().muted;
        }
        if (text.empty()) return;
        const f32 height = ImGui::GetFontSize() + px(12);
        d->AddRectFilled(at, ImVec2(at.x + size.x, at.y + height), IM_COL32(10, 12, 15, 225));
        d->AddRectFilled(at, ImVec2(at.x + px(5), at.y + height), color);
        d->AddText(ImVec2(at.x + px(14), at.y + px(6)), IM_COL32(236, 239, 243, 255),
                   ui::fitted(text, size.x - px(24)).c_str());
        ui::mark("image.banner", at, ImVec2(at.x + size.x, at.y + height));
    }

    /// Does nothing if the parameters contain no camera.
    template <typename F>
    static void move_camera(model& m, F&& how) {
        if (m.read_only || !m.has_parameters()) return;
        std::optional<camera> c = camera_of(m.schema, m.values);
        if (!c) return;
        orbit o = orbit_of(*c);
        how(o, *c);
        place_camera(o, *c);
        put_camera(*c, m.schema, m.values);
        m.values_changed = true;
    }

    // Left drag turns the camera, right drag moves it, middle drag moves the picture, the wheel zooms the
    // picture (with Ctrl: the camera).
    void steer(model& m, picture_store& store, ImVec2 at, ImVec2 size) {
        picture_model& p = m.picture;
        ImGuiIO& io = ImGui::GetIO();
        if (ImGui::IsItemHovered() && io.MouseWheel != 0) {
            if (io.KeyCtrl) {
                move_camera(m, [&](orbit& o, const camera&) { dolly(o, io.MouseWheel); });
            } else {  // the picture's point under the mouse stays at its place on the screen
                const f32 before = p.zoom > 0 ? p.zoom : fit_zoom_;
                const f32 x = p.pan_x, y = p.pan_y;
                const f32 mx = io.MousePos.x - at.x - size.x / 2 - x,
                          my = io.MousePos.y - at.y - size.y / 2 - y;
                zoom_by(p, std::pow(1.2F, io.MouseWheel));
                p.pan_x = x + mx * (1 - p.zoom / before);
                p.pan_y = y + my * (1 - p.zoom / before);
            }
        }
        const f32 dx = io.MouseDelta.x / size.y, dy = io.MouseDelta.y / size.y;
        if (ImGui::IsItemActive() && (dx != 0 || dy != 0)) {
            if (io.MouseDown[2] || (io.MouseDown[0] && io.KeyShift)) {
                p.pan_x += io.MouseDelta.x;
                p.pan_y += io.MouseDelta.y;
                if (p.zoom == 0) p.zoom = fit_zoom_;
            } else {
                move_camera(m, [&](orbit& o, const camera& c) {
                    if (io.MouseDown[1])
                        shift(o, dx, dy, c.fov_y);
                    else
                        turn(o, dx, dy);
                });
            }
        }
        if (ImGui::IsItemHovered() && !ImGui::IsItemActive()) pick(m, store);
    }

    // The session determines the exact value of the pixel, which is available one frame later. If the picture
    // is on the GPU, or if the run has ended, only the colours of the pixel are known.
    void pick(model& m, picture_store& store) {
        picture_model& p = m.picture;
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        if (mouse.x < low_.x || mouse.y < low_.y || mouse.x >= high_.x || mouse.y >= high_.y) return;
        const u32 x = std::min(p.width - 1, static_cast<u32>((mouse.x - low_.x) / (high_.x - low_.x) *
                                                             static_cast<f32>(p.width)));
        const u32 y = std::min(p.height - 1, static_cast<u32>((mouse.y - low_.y) / (high_.y - low_.y) *
                                                              static_cast<f32>(p.height)));
        p.pointer = std::pair(x, y);
        picked_frame_ = ImGui::GetFrameCount();
        if (p.pointed && p.pointed->which < p.shown.size()) {
            const pointed_pixel& at = *p.pointed;
            picked_ = fmt::format("{}x {} y {}   {}   frame {}",
                                  p.shown.size() > 1 ? p.shown[at.which].stage + "  " : "", at.x, at.y,
                                  at.text, at.ring_sequence);
            return;
        }
        u8 c[4] = {};
        bool known = p.pixels != nullptr;
        if (known)
            std::memcpy(c, p.pixels + (std::size_t{y} * p.width + x) * 4, sizeof c);
        else
            known = store.read_pixel(x, y, c);
        picked_ = known ? fmt::format("x {} y {}   R {} G {} B {} A {}", x, y, c[0], c[1], c[2], c[3])
                        : fmt::format("x {} y {}", x, y);
    }

    // Draws the text in the lower left corner of the picture or, if the mouse is near that corner, in the
    // lower right one.
    void draw_picked(ImDrawList* d, ImVec2 at, ImVec2 end) const {
        if (picked_frame_ != ImGui::GetFrameCount()) return;
        ImGui::PushFont(theme::small_font());
        const ImVec2 text = ImGui::CalcTextSize(picked_.c_str());
        const f32 width = text.x + px(16), height = text.y + px(8);
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const bool in_the_way = mouse.x < at.x + width + px(20) && mouse.y > end.y - height - px(20);
        const ImVec2 low(in_the_way ? std::max(at.x, end.x - width) : at.x, end.y - height),
            high(low.x + width, end.y);
        d->AddRectFilled(low, high, IM_COL32(10, 12, 15, 225));
        d->AddText(ImVec2(low.x + px(8), low.y + px(4)), IM_COL32(236, 239, 243, 255), picked_.c_str());
        ui::mark("image.pixel", low, high);
        ImGui::PopFont();
    }

    void draw_tools(model& m) {
        picture_model& p = m.picture;
        ImGui::PushFont(theme::small_font());
        if (ui::toggle("image.pause", p.paused ? "continue" : "pause", "space",
                       "pause the picture; the pipeline continues", p.paused) &&
            !p.paused)
            p.step = false;
        ImGui::SameLine();
        if (ui::button("image.step", "step", ".", "show the newest frame, then pause"))
            p.paused = p.step = true;
        ImGui::SameLine();
        if (ui::button("image.fit", "fit", "F", "the whole picture")) fit(p);
        ImGui::SameLine();
        if (ui::button("image.one", "1:1", "0", "one screen pixel per picture pixel")) {
            p.zoom = 1;
            p.pan_x = p.pan_y = 0;
        }
        ImGui::SameLine(0, px(14));
        ui::toggle("image.red", "R", "Shift+R", "red channel", p.red);
        ImGui::SameLine(0, px(3));
        ui::toggle("image.green", "G", "Shift+G", "green channel", p.green);
        ImGui::SameLine(0, px(3));
        ui::toggle("image.blue", "B", "Shift+B", "blue channel", p.blue);
        ImGui::SameLine(0, px(3));
        ui::toggle("image.alpha", "A", "Shift+A", "alpha as grey", p.alpha);
        ImGui::SameLine(0, px(14));
        ImGui::SetNextItemWidth(px(120));
        f32 stops = p.exposure_stops;
        if (ImGui::SliderFloat("##exposure", &stops, -exposure_limit, exposure_limit, "exposure %+.1f EV"))
            expose(p, stops);
        ui::mark("image.exposure");
        ui::tip(
            "exposure of the shown picture in stops; light is multiplied before its tone map  [ [ and ] ]");
        ImGui::SameLine(0, px(14));
        if (ui::button("image.save", "save", "Shift+P",
                       "write this frame as a PNG into the working directory") &&
            p.width > 0)
            p.save_frame = true;
        ImGui::SameLine(0, px(14));
        const f32 zoom = p.zoom > 0 ? p.zoom : fit_zoom_;
        const std::string text = p.width > 0 ? fmt::format("zoom {:.0f} %", zoom * 100) : "";
        ui::text(ui::fitted(text, std::max(px(10), ImGui::GetContentRegionAvail().x)), theme::colors().muted);
        ImGui::PopFont();
    }

    ImVec2 low_, high_;  ///< rectangle that the picture had on the screen in the last frame
    f32 fit_zoom_ = 1;
    int style_lines_ = 1;  ///< of the last frame
    std::string picked_;
    int picked_frame_ = -10;
};

}  // namespace

std::unique_ptr<panel> make_image_panel() { return std::make_unique<image_panel>(); }

}  // namespace carousel::viewer
