#include "viewer/panels/parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {

using theme::px;

namespace {

constexpr f32 least_width = 300;  // interface units

/// Draws the picture with a frame around it, in the part `room` of the window's width and height.
void draw_still(const slot_picture_model& p, picture_store& store, ImVec2 room) {
    const shown_picture& about = p.sample.about;
    const f32 zoom = std::min({room.x / static_cast<f32>(about.width),
                               room.y / static_cast<f32>(about.height), std::max(1.0F, px(4))});
    const ImVec2 size(std::max(1.0F, zoom * static_cast<f32>(about.width)),
                      std::max(1.0F, zoom * static_cast<f32>(about.height)));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::Dummy(size);
    ui::mark("slot.picture");
    ImDrawList* d = ImGui::GetWindowDrawList();
    const ImVec2 high(at.x + size.x, at.y + size.y);
    if (void* texture = store.still(p.sample.rgba.data(), about.width, about.height, p.version))
        d->AddImage((ImTextureID)(intptr_t)texture, at, high);
    d->AddRect(at, high, theme::colors().border);
}

std::string line_about(const shown_picture& p) {
    std::string text = fmt::format("{} {} · {} x {}", p.plane, p.type, p.width, p.height);
    if (p.scale.has_ends())
        text += fmt::format(" · {} to {} in {}", scale_text(p.scale.low), scale_text(p.scale.high),
                            name_of(p.scale.colours));
    return text;
}

}  // namespace

void open_slot(model& m, const telemetry::link_view& ring, u32 slot) {
    slot_choice of;
    of.ring = ring.name;
    of.slot = slot;
    const telemetry::slot_view& s = ring.slots[slot];
    if (s.phase != telemetry::slot_phase::free && s.phase != telemetry::slot_phase::fill &&
        s.phase != telemetry::slot_phase::quarantined)
        of.ring_sequence = s.ring_sequence;
    // The same plane and colours as in the image, if the image shows this ring.
    const std::vector<shown_picture>& shown = m.picture.shown;
    for (std::size_t k = 0; k < std::min<std::size_t>(2, shown.size()); ++k)
        if (shown[k].stage == ring.name) {
            of.plane = shown[k].plane;
            of.style = m.picture.styles.of[k];
            break;
        }
    m.slot_picture.wanted = std::move(of);
    m.slot_picture.requested = true;
}

bool close_slot(model& m) {
    const bool open = m.slot_picture.wanted.has_value();
    m.slot_picture.wanted.reset();
    return open;
}

void draw_slot_window(model& m, picture_store& store) {
    slot_picture_model& p = m.slot_picture;
    if (!p.wanted) return;
    const theme::palette& c = theme::colors();
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    const ImVec2 room(std::max(px(64), std::min(px(560), display.x * 0.44F)),
                      std::max(px(48), display.y * 0.5F));
    ImGui::SetNextWindowPos(ImVec2(px(16), px(72)), ImGuiCond_Appearing);
    ImGui::PushStyleColor(ImGuiCol_WindowBg, c.raised);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(12), px(10)));
    if (ImGui::Begin("slot", nullptr,
                     ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings |
                         ImGuiWindowFlags_AlwaysAutoResize)) {
        const f32 width = std::max(px(least_width), room.x);
        const bool here = p.sample.of.ring == p.wanted->ring && p.sample.of.slot == p.wanted->slot;
        ui::text(ui::fitted(fmt::format("{} · slot {}", p.wanted->ring, p.wanted->slot), width - px(110)));
        ImGui::SameLine(width - px(98));
        ImGui::PushFont(theme::small_font());
        ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(6), px(1)));
        if (ui::button("slot.again", "again", "", "copy the slot once more")) p.requested = true;
        ImGui::SameLine();
        if (ui::button("slot.close", "close", "Esc", "close this picture")) (void)close_slot(m);
        ImGui::PopStyleVar();
        ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
        if (!here) {
            ui::text("copying ...", c.muted);
        } else {
            ui::text(p.sample.text, p.sample.whole ? c.text : c.warning);
            ui::mark("slot.text");
            if (p.sample.whole) {
                ui::text(line_about(p.sample.about), c.muted);
                if (const std::string line = line_of(p.sample.about.carried); !line.empty())
                    ui::text(line, c.muted);
            }
        }
        ImGui::PopTextWrapPos();
        ImGui::PopFont();
        if (here && p.sample.whole) draw_still(p, store, room);
        const ImVec2 low = ImGui::GetWindowPos();
        ui::mark("slot.window", low,
                 ImVec2(low.x + ImGui::GetWindowWidth(), low.y + ImGui::GetWindowHeight()));
    }
    ImGui::End();
    ImGui::PopStyleVar();
    ImGui::PopStyleColor();
}

}  // namespace carousel::viewer
