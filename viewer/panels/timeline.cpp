// The last frames as bars, with one lane per stage. A bar begins when the stage claims the frame, changes its
// shade when the stage submits it, and ends at the commit. A line continues the bar until the frame's readers
// have finished. A stall is visible as a long bar in the lane of the stage that caused it. The bar of a frame
// in progress ends at the current time and has an outline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "viewer/panels/panel.hpp"
#include "viewer/ui/plot.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

class timeline_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "timeline"; }
    [[nodiscard]] const char* title() const noexcept override { return "Timeline"; }
    void attach(const model&) override { frozen_ns_ = 0; }

    void draw(model& m, picture_store&) override {
        const auto& lanes = m.bars.bars();
        if (lanes.empty() || lanes.size() != m.snap.stages.size()) {
            ui::small_text("no frames yet");
            return;
        }
        const ImVec2 at = ImGui::GetCursorScreenPos(), size = ImGui::GetContentRegionAvail();
        ImGui::PushFont(theme::small_font());
        f32 label = px(50);
        for (const telemetry::stage_view& l : m.snap.stages)
            label = std::max(label, ImGui::CalcTextSize(ui::fitted(l.name, px(90)).c_str()).x);
        const f32 axis = ImGui::GetFontSize() + px(6), height = std::max(1.0F, size.y - axis);
        // If a lane were lower than its name, the lanes scroll.
        const f32 all = std::max(height, static_cast<f32>(lanes.size()) * (ImGui::GetFontSize() + px(2)));
        const f32 bar = all > height ? ImGui::GetStyle().ScrollbarSize : 0;
        const ImVec2 low(at.x + label + px(8), at.y), high(at.x + size.x - bar - px(4), at.y + height);
        const bool room = high.x - low.x > px(40) && height > px(20);
        if (ImGui::BeginChild("lanes", ImVec2(std::max(1.0F, size.x), height), false,
                              ImGuiWindowFlags_NoScrollWithMouse)) {
            const ImVec2 top = ImGui::GetCursorScreenPos();
            ImGui::InvisibleButton("timeline", ImVec2(std::max(1.0F, size.x - bar), all - 1));
            ui::mark("timeline.area", at, ImVec2(at.x + size.x, at.y + size.y));
            const f32 lane = all / static_cast<f32>(lanes.size());
            const u32 stage = m.selected_seat < m.snap.seats.size() ? m.snap.seats[m.selected_seat].stage : 0;
            follower_.begin(stage, height);
            if (stage < lanes.size())
                follower_.at_row(top.y + lane * static_cast<f32>(stage),
                                 top.y + lane * static_cast<f32>(stage + 1));
            if (room) {
                steer(m, high.x - low.x);
                draw_lanes(m, at, ImVec2(low.x, top.y), ImVec2(high.x, top.y + all));
            }
        }
        ImGui::EndChild();
        if (room) draw_axis(m, at, low, high);
        ImGui::PopFont();
    }

    void menu(model& m, f32 width) override {
        ImGui::PushFont(theme::small_font());
        ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(5), 0));
        bool frozen = frozen_ns_ != 0;
        if (ui::toggle("timeline.freeze", "freeze", "Z", "freeze the timeline", frozen)) freeze(m, frozen);
        ImGui::SameLine();
        if (width > px(330))
            ui::text("dark: enqueued · bright: computed · line: until read", theme::colors().muted);
        ImGui::PopStyleVar();
        ImGui::PopFont();
    }

    bool on_key(model& m, const key_press& k) override {
        if (k.key != 'Z' || k.ctrl || k.shift) return false;
        freeze(m, frozen_ns_ == 0);
        return true;
    }

private:
    void freeze(const model& m, bool on) { frozen_ns_ = on ? std::max<u64>(1, m.snap.taken_ns) : 0; }

    void steer(model& m, f32 width) {
        ImGuiIO& io = ImGui::GetIO();
        if (ImGui::IsItemActive() && io.MouseDelta.y != 0)
            ImGui::SetScrollY(ImGui::GetScrollY() - io.MouseDelta.y);
        if (ImGui::IsItemHovered() && io.MouseWheel != 0)
            m.kept.timeline_ms =
                std::clamp(m.kept.timeline_ms * std::pow(0.8F, io.MouseWheel), 0.1F, 60'000.0F);
        if (!ImGui::IsItemActive() || io.MouseDelta.x == 0) return;
        if (frozen_ns_ == 0) freeze(m, true);
        const f64 ns = static_cast<f64>(io.MouseDelta.x) * static_cast<f64>(m.kept.timeline_ms) * 1e6 /
                       static_cast<f64>(width);
        frozen_ns_ = static_cast<u64>(std::max(1.0, static_cast<f64>(frozen_ns_) - ns));
    }

    void draw_lanes(const model& m, ImVec2 at, ImVec2 low, ImVec2 high) const {
        const theme::palette& c = theme::colors();
        ImDrawList* d = ImGui::GetWindowDrawList();
        const f64 span_ns = static_cast<f64>(m.kept.timeline_ms) * 1e6;
        const f64 end_ns = static_cast<f64>(frozen_ns_ != 0 ? frozen_ns_ : m.snap.taken_ns),
                  begin_ns = end_ns - span_ns;
        const auto x_of = [&](u64 t) {
            return low.x + static_cast<f32>((static_cast<f64>(t) - begin_ns) / span_ns) * (high.x - low.x);
        };
        for_each_tick(m, low, high,
                      [&](f32 x, f64) { d->AddLine(ImVec2(x, low.y), ImVec2(x, high.y), c.grid); });
        const f32 lane = (high.y - low.y) / static_cast<f32>(m.snap.stages.size());
        for (std::size_t k = 0; k < m.snap.stages.size(); ++k) {
            const f32 y = low.y + lane * static_cast<f32>(k);
            const ImU32 color = theme::stage_color(static_cast<u32>(k));
            d->AddText(ImVec2(at.x, y + lane / 2 - ImGui::GetFontSize() / 2), color,
                       ui::fitted(m.snap.stages[k].name, px(90)).c_str());
            d->AddLine(ImVec2(low.x, y + lane), ImVec2(high.x, y + lane), c.grid);
            ui::mark("timeline.lane." + m.snap.stages[k].name, ImVec2(at.x, y), ImVec2(high.x, y + lane));
            d->PushClipRect(ImVec2(low.x, y), ImVec2(high.x, y + lane), true);
            for (telemetry::frame_bar bar : m.bars.bars()[k]) {
                const bool open = bar.committed_ns == 0;
                if (open) bar.committed_ns = m.snap.taken_ns;
                if (static_cast<f64>(bar.claimed_ns) < end_ns &&
                    static_cast<f64>(std::max(bar.done_ns, bar.committed_ns)) > begin_ns)
                    draw_bar(d, bar, open, color, y, lane, x_of);
            }
            d->PopClipRect();
        }
    }

    /// Calls `use` with the position of each tick and its distance from the right end in ms.
    template <typename F>
    static void for_each_tick(const model& m, ImVec2 low, ImVec2 high, const F& use) {
        const f64 span = static_cast<f64>(m.kept.timeline_ms);
        const f64 step = tick_step(span, std::max(2, static_cast<int>((high.x - low.x) / px(70))));
        for (f64 v = 0; v <= span * 1.0001; v += step)
            use(high.x - static_cast<f32>(v / span) * (high.x - low.x), v);
    }
    void draw_axis(const model& m, ImVec2 at, ImVec2 low, ImVec2 high) const {
        for_each_tick(m, low, high, [&](f32 x, f64 v) {
            const std::string text = v == 0 ? (frozen_ns_ != 0 ? "frozen" : "now")
                                            : fmt::format("-{:g} ms", std::round(v * 1000) / 1000);
            const f32 w = ImGui::CalcTextSize(text.c_str()).x;
            if (x - w / 2 > at.x)
                ImGui::GetWindowDrawList()->AddText(ImVec2(std::min(x - w / 2, high.x - w), high.y + px(4)),
                                                    theme::colors().muted, text.c_str());
        });
    }

    // Frames of one stage overlap in time, so consecutive frames are drawn in three sub-lanes in turn.
    template <typename F>
    static void draw_bar(ImDrawList* d, const telemetry::frame_bar& b, bool open, ImU32 color, f32 y,
                         f32 lane, const F& x_of) {
        const f32 pitch = (lane - px(6)) / 3, top = y + px(3) + pitch * static_cast<f32>(b.ring_sequence % 3),
                  bottom = top + std::max(px(2), pitch - px(2));
        // if the submit time is earlier than the claim, the stage has not submitted yet
        const u64 submitted = b.submitted_ns < b.claimed_ns ? b.committed_ns : b.submitted_ns;
        const f32 x0 = x_of(b.claimed_ns), x1 = x_of(submitted), x2 = std::max(x_of(b.committed_ns), x0 + 1);
        if (b.is_tombstone) color = theme::colors().bad;
        if (b.done_ns > b.committed_ns)
            d->AddLine(ImVec2(x2, (top + bottom) / 2), ImVec2(x_of(b.done_ns), (top + bottom) / 2),
                       theme::with_alpha(color, 0.5F), px(1));
        d->AddRectFilled(ImVec2(x0, top), ImVec2(std::max(x1, x0 + 1), bottom),
                         theme::with_alpha(color, 0.45F));
        d->AddRectFilled(ImVec2(x1, top), ImVec2(std::max(x2 - 1, x1 + 1), bottom), color);
        if (open) d->AddRect(ImVec2(x0, top), ImVec2(x2, bottom), theme::colors().text, 0, 0, px(1));
        const std::string text = fmt::format("{}", b.ring_sequence);
        const ImVec2 size = ImGui::CalcTextSize(text.c_str());
        if (size.x + px(6) < x2 - x0 && size.y <= bottom - top + px(2))
            d->AddText(ImVec2(x0 + px(3), (top + bottom - size.y) / 2), theme::text_on(color), text.c_str());
        if (ImGui::IsItemHovered() &&
            ImGui::IsMouseHoveringRect(ImVec2(x0, top), ImVec2(std::max(x2, x0 + px(3)), bottom)))
            ui::tip(fmt::format(
                "frame {}{}{}\nclaimed to submitted  {} ms\nsubmitted to committed  {} ms{}", b.ring_sequence,
                b.is_tombstone ? " (tombstone)" : "", open ? " (in progress)" : "",
                ui::number(static_cast<f64>(submitted - b.claimed_ns) / 1e6),
                ui::number(static_cast<f64>(b.committed_ns - std::min(submitted, b.committed_ns)) / 1e6),
                b.born_ns != 0 && b.born_ns < b.committed_ns
                    ? fmt::format("\nsource's claim to this commit  {} ms",
                                  ui::number(static_cast<f64>(b.committed_ns - b.born_ns) / 1e6))
                    : ""));
    }

    ui::row_follower follower_;
    u64 frozen_ns_ = 0;  ///< the time at the right end of the axis; 0: the axis moves with the current time
};

}  // namespace

std::unique_ptr<panel> make_timeline_panel() { return std::make_unique<timeline_panel>(); }

}  // namespace carousel::viewer
