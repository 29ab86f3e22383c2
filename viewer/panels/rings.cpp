// Every slot of every ring, with a colour and a shape for the state of the slot. The readers of a ring are
// shown below it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "device/backend.hpp"
#include "viewer/panels/panel.hpp"
#include "viewer/panels/parts.hpp"
#include "viewer/panels/screen.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using telemetry::slot_phase;
using theme::px;

// Some users cannot distinguish the colours, so each state also has its own shape.
void draw_cell(ImDrawList* d, ImVec2 low, ImVec2 high, slot_phase p) {
    const ImU32 color = theme::slot_color(p);
    const f32 inset = px(3);
    switch (p) {
        case slot_phase::free:
            d->AddRect(low, high, color, px(2), 0, px(1));
            break;
        case slot_phase::fill:  // half full
            d->AddRect(low, high, color, px(2), 0, px(1.5F));
            d->AddRectFilled(ImVec2(low.x, (low.y + high.y) / 2), high, color, px(2));
            break;
        case slot_phase::ready:
            d->AddRectFilled(low, high, color, px(2));
            break;
        case slot_phase::leased:  // full, with an outline inside, because a reader holds the slot
            d->AddRectFilled(low, high, color, px(2));
            d->AddRect(ImVec2(low.x + px(2), low.y + px(2)), ImVec2(high.x - px(2), high.y - px(2)),
                       theme::text_on(color), px(1), 0, px(1.2F));
            break;
        case slot_phase::done:
            d->AddRectFilled(ImVec2(low.x, high.y - (high.y - low.y) * 0.3F), high, color, px(2));
            d->AddRect(low, high, color, px(2), 0, px(1));
            break;
        case slot_phase::quarantined:
            d->AddRectFilled(low, high, color, px(2));
            d->AddLine(ImVec2(low.x + inset, low.y + inset), ImVec2(high.x - inset, high.y - inset),
                       IM_COL32_WHITE, px(1.5F));
            d->AddLine(ImVec2(high.x - inset, low.y + inset), ImVec2(low.x + inset, high.y - inset),
                       IM_COL32_WHITE, px(1.5F));
            break;
    }
}

struct legend_entry {
    slot_phase phase;
    const char* text;
};
constexpr std::array<legend_entry, 6> legend{{
    {slot_phase::free, "free"},
    {slot_phase::fill, "being filled"},
    {slot_phase::ready, "ready"},
    {slot_phase::leased, "leased"},
    {slot_phase::done, "read by all"},
    {slot_phase::quarantined, "quarantined"},
}};

std::string reader_name(const model& m, const telemetry::group_view& g) {
    return g.stage != shm::none ? m.snap.stage_name(g.stage) : "viewer";
}

void slot_tip(const model& m, const telemetry::link_view& l, u32 k) {
    if (!ImGui::IsItemHovered()) return;
    const telemetry::slot_view& s = l.slots[k];
    std::string t = fmt::format("slot {} of {}: {}\ngeneration {}", k, l.name, telemetry::name_of(s.phase),
                                s.word.generation);
    if (s.phase != slot_phase::free)
        t += fmt::format("\nfilled by {} (job {}, version {})", m.snap.stage_name(s.stage), s.word.job,
                         s.word.version);
    if (s.phase == slot_phase::ready || s.phase == slot_phase::leased || s.phase == slot_phase::done)
        t += fmt::format("\nframe {}", s.ring_sequence);
    if (s.tombstone_stage != shm::none)
        t += fmt::format("\ntombstone: given up by {}", m.snap.stage_name(s.tombstone_stage));
    for (const telemetry::group_view& g : l.groups)
        if ((s.leased_by >> g.index & 1U) != 0) t += fmt::format("\nleased by {}", reader_name(m, g));
    if (s.phase == slot_phase::quarantined)
        t += "\nquarantined because its writer died, until that process's end is confirmed";
    t += "\nclick: the picture of this slot";
    ui::tip(t);
}

void draw_slots(model& m, const telemetry::link_view& l) {
    ImDrawList* d = ImGui::GetWindowDrawList();
    const u32 count = static_cast<u32>(l.slots.size());
    const f32 gap = px(3), space = ImGui::GetContentRegionAvail().x, height = px(20);
    const f32 width = std::clamp((space + gap) / static_cast<f32>(std::max(1U, std::min(count, 32U))) - gap,
                                 px(12), px(52));
    const u32 a_row = std::max(1U, static_cast<u32>((space + gap + 0.5F) / (width + gap)));
    ImGui::PushFont(theme::small_font());
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(gap, gap));
    for (u32 k = 0; k < count; ++k) {
        if (k % a_row != 0) ImGui::SameLine();
        const ImVec2 at = ImGui::GetCursorScreenPos(), end(at.x + width, at.y + height);
        ImGui::PushID(static_cast<int>(k));
        ImGui::InvisibleButton("slot", ImVec2(width, height));
        ImGui::PopID();
        const telemetry::slot_view& s = l.slots[k];
        draw_cell(d, at, end, s.phase);
        if (s.phase == slot_phase::ready || s.phase == slot_phase::leased) {
            const std::string text = fmt::format("{}", s.ring_sequence % 100000);
            const ImVec2 size = ImGui::CalcTextSize(text.c_str());
            if (size.x < width - px(6))
                d->AddText(ImVec2(at.x + (width - size.x) / 2, at.y + (height - size.y) / 2),
                           theme::text_on(theme::slot_color(s.phase)), text.c_str());
        }
        ui::mark(fmt::format("rings.slot.{}.{}", l.name, k));
        const auto& chosen = m.slot_picture.wanted;
        if (chosen && chosen->ring == l.name && chosen->slot == k)
            d->AddRect(ImVec2(at.x - px(1), at.y - px(1)), ImVec2(end.x + px(1), end.y + px(1)),
                       theme::colors().accent, px(3), 0, px(2));
        if (ImGui::IsItemClicked()) open_slot(m, l, k);
        slot_tip(m, l, k);
    }
    ImGui::PopStyleVar();
    ImGui::PopFont();
}

std::string readers_text(const model& m, std::size_t link) {
    const telemetry::link_view& l = m.snap.links[link];
    std::string text;
    for (std::size_t g = 0; g < l.groups.size(); ++g) {
        const telemetry::group_view& v = l.groups[g];
        const char* kind = v.state == ring::group_state::latest   ? "latest"
                           : v.state == ring::group_state::closed ? "closed"
                                                                  : "blocking";
        text += fmt::format("{}{} ({}): ", text.empty() ? "read by " : "     ", reader_name(m, v), kind);
        if (v.state == ring::group_state::blocking) text += fmt::format("lag {}, ", v.lag);
        text += fmt::format("{} leased", v.leases);
        if (v.skipped == 0) continue;
        text += fmt::format(", {} skipped", v.skipped);
        if (link < m.rates.links.size() && g < m.rates.links[link].group_skips_per_second.size())
            text += fmt::format(" ({}/s)", ui::number(m.rates.links[link].group_skips_per_second[g]));
    }
    return text.empty() ? "no readers" : text;
}

/// Returns the largest window that any process of the producing stage uses now; if no process reports a
/// window, returns the planned window.
u32 open_window(const model& m, const telemetry::link_view& l) {
    u32 widest = 0;
    for (const telemetry::seat_view& s : m.snap.seats)
        if (s.stage == l.stage) widest = std::max(widest, s.depth.window);
    return widest > 0 ? widest : l.window;
}

class rings_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "rings"; }
    [[nodiscard]] const char* title() const noexcept override { return "Rings"; }

    void draw(model& m, picture_store&) override {
        if (m.snap.links.empty()) ui::small_text("no rings yet");
        const u32 stage = m.selected_seat < m.snap.seats.size() ? m.snap.seats[m.selected_seat].stage : 0;
        follower_.begin(stage, ImGui::GetWindowHeight());
        for (std::size_t k = 0; k < m.snap.links.size(); ++k) {
            ImGui::PushID(static_cast<int>(k));
            const ImVec2 begin = ImGui::GetCursorScreenPos();
            draw_link(m, k);
            ImGui::PopID();
            if (m.snap.links[k].stage == stage) follower_.at_row(begin.y, ImGui::GetCursorScreenPos().y);
            ui::mark("rings.link." + m.snap.links[k].name, begin, ImGui::GetCursorScreenPos());
        }
        content_ = ImGui::GetCursorPosY();
    }

    [[nodiscard]] f32 wanted_height(const model&) const override { return frame_height() + content_; }

    void menu(model&, f32 width) override {
        ImGui::PushFont(theme::small_font());
        const f32 side = ImGui::GetFontSize() * 0.85F;
        f32 need = 0;
        for (const legend_entry& e : legend) need += side + px(5) + ImGui::CalcTextSize(e.text).x + px(12);
        if (need <= width) {
            for (const legend_entry& e : legend) {
                const ImVec2 at = ImGui::GetCursorScreenPos();
                draw_cell(ImGui::GetWindowDrawList(), ImVec2(at.x, at.y + px(2)),
                          ImVec2(at.x + side, at.y + px(2) + side), e.phase);
                ImGui::Dummy(ImVec2(side, side));
                ImGui::SameLine(0, px(5));
                ui::text(e.text, theme::colors().muted);
                ImGui::SameLine(0, px(12));
            }
        }
        ImGui::PopFont();
    }

private:
    static void draw_link(model& m, std::size_t k) {
        const telemetry::link_view& l = m.snap.links[k];
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const f32 right = at.x + ImGui::GetContentRegionAvail().x;
        std::string rate;
        if (k < m.rates.links.size() && m.rates.span_s > 0) {
            const telemetry::link_rates& r = m.rates.links[k];
            rate = fmt::format("sent {} · received {} frames/s · {} GB/s", ui::number(r.sent_per_second),
                               ui::number(r.received_per_second), ui::number(r.bytes_per_second / 1e9));
        }
        ui::text(ui::fitted(l.name, px(160)), theme::stage_color(l.stage == shm::none ? 7 : l.stage));
        ImGui::SameLine();
        ImGui::PushFont(theme::small_font());
        const f32 rate_width = ImGui::CalcTextSize(rate.c_str()).x;
        const char* memory =
            l.memory <= 2 ? device::name_of(static_cast<device::memory_kind>(l.memory)) : "?";
        const std::string newest = l.newest > l.tail ? fmt::format("{}", l.newest - 1) : "none";
        const u32 open = open_window(m, l);
        const std::string window =
            open < l.window ? fmt::format("{} of {}", open, l.window) : fmt::format("{}", l.window);
        const std::array about{fmt::format("{} slots of {} ({})", l.slots.size(),
                                           ui::bytes(static_cast<f64>(l.slot_bytes)), memory),
                               fmt::format("window {}", window), fmt::format("tail {}", l.tail),
                               fmt::format("newest ready {}", newest)};
        const f32 begin = ImGui::GetCursorScreenPos().x;
        ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(1));
        ui::text(ui::fitting_parts(about, right - begin - rate_width - px(14)), theme::colors().muted);
        ui::tip(fmt::format("{}", fmt::join(about, "\n")));
        ImGui::GetWindowDrawList()->AddText(ImVec2(right - rate_width, at.y + px(1)), theme::colors().text,
                                            rate.c_str());
        ImGui::PopFont();
        draw_slots(m, l);
        ImGui::PushFont(theme::small_font());
        ui::text(ui::fitted(readers_text(m, k), right - at.x), theme::colors().muted);
        ImGui::PopFont();
        ImGui::Dummy(ImVec2(1, px(2)));
    }

    ui::row_follower follower_;
    f32 content_ = 0;  ///< height of the content when it was last drawn
};

}  // namespace

std::unique_ptr<panel> make_rings_panel() { return std::make_unique<rings_panel>(); }

}  // namespace carousel::viewer
