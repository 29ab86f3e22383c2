#include "viewer/panels/parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;
constexpr ImU32 ground = IM_COL32(10, 12, 15, 225), letters = IM_COL32(236, 239, 243, 255);
constexpr int bar_steps = 32;

f32 width_of(const std::string& text) { return ImGui::CalcTextSize(text.c_str()).x; }
f32 line_height() { return ImGui::GetFontSize() + px(3); }
/// Below the banner.
f32 top_of(const picture_place& at) { return at.room_low.y + ImGui::GetFontSize() + px(20); }

ImU32 in_gl(colour c) { return IM_COL32(c.r, c.g, c.b, 255); }

void draw_bar(ImDrawList* d, ImVec2 low, ImVec2 high, colour_map map) {
    const f32 step = (high.x - low.x) / bar_steps;
    for (int k = 0; k < bar_steps; ++k) {
        const f32 x = low.x + step * static_cast<f32>(k);
        const ImU32 from = in_gl(colour_at(map, static_cast<f64>(k) / bar_steps)),
                    to = in_gl(colour_at(map, static_cast<f64>(k + 1) / bar_steps));
        d->AddRectFilledMultiColor(ImVec2(x, low.y), ImVec2(x + step, high.y), from, to, to, from);
    }
}

/// Draws the legend of a picture's values in its upper left corner. Draws nothing if there is only one
/// picture and its frame contains colours.
void draw_legend(const picture_model& p, std::size_t which, const picture_place& at, ImDrawList* d) {
    const shown_picture& s = p.shown[which];
    if (!s.scale.of_values && p.shown.size() == 1) return;
    const f32 pixel = (at.high.x - at.low.x) / static_cast<f32>(std::max(1U, p.width));
    const f32 left = std::max(at.room_low.x, at.low.x + pixel * static_cast<f32>(s.x)),
              right = std::min(at.room_high.x,
                               at.low.x + pixel * static_cast<f32>(s.x + s.width * std::max(1U, s.zoom)));
    if (right - left < px(120)) return;
    const std::string name = ui::fitted(name_of(s), right - left - px(16)), beyond = beyond_text(s.scale),
                      low_text = scale_text(s.scale.low), high_text = scale_text(s.scale.high);
    const bool ends = s.scale.has_ends();
    const f32 texts = width_of(low_text) + width_of(high_text) + px(30);
    const f32 bar = ends ? std::clamp(right - left - texts, px(16), px(110)) : 0;
    const f32 scale_width = ends ? width_of(low_text) + bar + width_of(high_text) + px(12) : 0;
    const bool no_numbers = s.scale.nan + s.scale.infinite != 0;
    const f32 width =
        std::min(right - left, std::max({width_of(name), scale_width, width_of(beyond) + px(16)}) + px(16));
    const f32 rows = 1.0F + (ends ? 1.0F : 0.0F) + (beyond.empty() ? 0.0F : 1.0F);
    const ImVec2 low(left, top_of(at)), high(low.x + width, low.y + rows * line_height() + px(8));
    d->AddRectFilled(low, high, ground);
    ImVec2 pen(low.x + px(8), low.y + px(4));
    d->AddText(pen, letters, name.c_str());
    pen.y += line_height();
    if (ends) {
        d->AddText(pen, letters, low_text.c_str());
        const ImVec2 from(pen.x + width_of(low_text) + px(6), pen.y + px(2));
        draw_bar(d, from, ImVec2(from.x + bar, pen.y + ImGui::GetFontSize()), s.scale.colours);
        d->AddText(ImVec2(from.x + bar + px(6), pen.y), letters, high_text.c_str());
        pen.y += line_height();
    }
    if (!beyond.empty()) {
        if (no_numbers)
            d->AddRectFilled(ImVec2(pen.x, pen.y + px(3)), ImVec2(pen.x + px(9), pen.y + px(12)),
                             in_gl(no_number_colour));
        d->AddText(ImVec2(pen.x + (no_numbers ? px(14) : 0), pen.y), letters, beyond.c_str());
    }
    ui::mark(fmt::format("image.legend.{}", which), low, high);
}

/// Draws a table of the frames' metadata in the upper right corner. If there is no room for all entries, the
/// number of entries that are not shown is drawn instead of them.
void draw_carried(const picture_model& p, const picture_place& at, ImDrawList* d) {
    std::vector<std::string> facts;
    for (const shown_picture& s : p.shown) {
        if (s.carried.empty()) continue;
        if (p.shown.size() > 1) facts.push_back(s.stage + ":");
        for (const auto& [name, value] : s.carried) facts.push_back(fmt::format("{}  {}", name, value));
    }
    if (facts.empty()) return;
    const ImVec2 size(at.room_high.x - at.room_low.x, at.room_high.y - at.room_low.y);
    const f32 line = line_height(), room = size.y - ImGui::GetFontSize() - px(40);
    const std::size_t most = room < line ? 0 : static_cast<std::size_t>(room / line);
    std::vector<std::string> rows;
    for (const std::string& fact : facts) {
        if (rows.size() + 1 >= most && rows.size() + 1 < facts.size()) {
            rows.push_back(fmt::format("and {} more", facts.size() - rows.size()));
            break;
        }
        rows.push_back(ui::fitted(fact, size.x / 2));
    }
    f32 width = 0;
    for (const std::string& row : rows) width = std::max(width, width_of(row));
    const ImVec2 low(at.room_high.x - width - px(16), top_of(at)),
        high(at.room_high.x, low.y + static_cast<f32>(rows.size()) * line + px(8));
    d->AddRectFilled(low, high, ground);
    for (std::size_t k = 0; k < rows.size(); ++k)
        d->AddText(ImVec2(low.x + px(8), low.y + px(4) + static_cast<f32>(k) * line), letters,
                   rows[k].c_str());
    ui::mark("image.carried", low, high);
}

/// Draws the note at the bottom, centred.
void draw_note(const std::string& note, const picture_place& at, ImDrawList* d) {
    if (note.empty()) return;
    const std::string text = ui::fitted(note, at.room_high.x - at.room_low.x - px(40));
    const f32 middle = (at.room_low.x + at.room_high.x) / 2, half = width_of(text) / 2 + px(8);
    const ImVec2 low(middle - half, at.room_high.y - 2.6F * line_height()),
        high(middle + half, low.y + line_height() + px(6));
    d->AddRectFilled(low, high, ground);
    d->AddText(ImVec2(low.x + px(8), low.y + px(4)), theme::colors().warning, text.c_str());
    ui::mark("image.note", low, high);
}

}  // namespace

void draw_notes(const picture_model& p, const picture_place& at, ImDrawList* d) {
    ImGui::PushFont(theme::small_font());
    for (std::size_t k = 0; k < p.shown.size(); ++k) draw_legend(p, k, at, d);
    draw_carried(p, at, d);
    draw_note(p.note, at, d);
    ImGui::PopFont();
}

}  // namespace carousel::viewer
