#include "viewer/panels/parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {

using run::seat_order;
using theme::px;

namespace {

/// Draws a line like "host b (10.0.0.2): running, its clock is ..." across all columns.
void draw_host(const model& m, const host_report& h) {
    const theme::palette& c = theme::colors();
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const f32 width = ImGui::GetWindowWidth() - (at.x - ImGui::GetWindowPos().x) - px(12);
    ImGui::Dummy(ImVec2(1, ImGui::GetFontSize()));
    ui::mark("stages.host." + h.name, at, ImVec2(at.x + width, at.y + ImGui::GetFontSize()));
    ImDrawList* d = ImGui::GetWindowDrawList();
    d->PushClipRect(ImGui::GetWindowPos(), ImVec2(ImGui::GetWindowPos().x + ImGui::GetWindowWidth(),
                                                  at.y + ImGui::GetFontSize() + px(2)));
    const ImU32 color = m.phase == run_phase::ended ? c.muted : state_color(h.state);
    d->AddRectFilled(ImVec2(at.x, at.y + px(2)), ImVec2(at.x + px(4), at.y + ImGui::GetFontSize()), color);
    d->AddText(ImVec2(at.x + px(9), at.y), color, ui::fitted(h.text, width).c_str());
    d->PopClipRect();
}

// Draws the row from the supervisor's report, because the control block of that host is not available here.
void draw_remote_row(model& m, const host_report& h, const seat_report& s) {
    const theme::palette& c = theme::colors();
    const bool ended = m.phase == run_phase::ended;
    ImGui::TableNextRow();
    ImGui::PushID(s.label.c_str());
    ImGui::TableNextColumn();
    ImGui::Indent(px(9));
    ui::text(ui::fitted(s.label, ImGui::GetContentRegionAvail().x), c.text);
    ui::mark("stages.row." + s.label);
    ImGui::Unindent(px(9));
    ImGui::TableNextColumn();
    const std::string state = ended ? "ended" : s.state.value_or("?");
    ui::text(state, ended ? c.muted : state_color(state));
    ui::mark("stages.state." + s.label);
    if (s.last_exit) ui::tip("last exit: " + *s.last_exit);
    const i32 pid = s.pid.value_or(0);
    number_cell(pid == 0 ? "-" : fmt::format("{}", pid));
    number_cell("-", c.muted);
    const u32 restarts = s.restarts.value_or(0);
    number_cell(fmt::format("{}", restarts), restarts > 0 ? c.warning : c.muted);
    number_cell(ui::number(s.frames_per_second.value_or(0), s.frames_per_second.has_value()));
    ImGui::TableNextColumn();
    if (const auto shares = s.shares()) draw_shares(*shares);
    for (int k = 0; k < 3; ++k) number_cell("-", c.muted);  // latencies and heartbeat
    number_cell(s.cpu_percent ? fmt::format("{:.0f}", *s.cpu_percent) : "-");
    number_cell(bytes_text(s.memory_bytes.value_or(0)));
    number_cell("-", c.muted);
    ImGui::TableNextColumn();
    stage_buttons(m, s.label, h.is_there() && pid != 0, s.is_paused(), false);
    ImGui::PopID();
}

}  // namespace

ImU32 state_color(const std::string& state) {
    const theme::palette& c = theme::colors();
    if (state == "running") return c.good;
    if (state == "done" || state == "down" || state == "ended") return c.muted;
    const bool bad = state == "failed" || state == "dying" || state == "lost" || state == "refused";
    return bad ? c.bad : c.warning;
}

void draw_shares(const telemetry::stage_shares& t) {
    const theme::palette& c = theme::colors();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const f32 number = ImGui::CalcTextSize("100%").x + px(4);
    const f32 width = std::max(px(10), ImGui::GetContentRegionAvail().x - number),
              height = ImGui::GetFontSize() - px(2);
    ImDrawList* d = ImGui::GetWindowDrawList();
    ImGui::InvisibleButton("shares", ImVec2(width + number, height));
    const ImVec2 low(at.x, at.y + px(1));
    d->AddRectFilled(low, ImVec2(at.x + width, low.y + height), c.raised, px(2));
    const f32 shares[3] = {static_cast<f32>(t.busy), static_cast<f32>(t.wait_input),
                           static_cast<f32>(t.wait_output)};
    const ImU32 tones[3] = {c.good, theme::with_alpha(theme::stage_color(0), 0.5F),
                            theme::with_alpha(theme::stage_color(1), 0.65F)};
    f32 x = at.x;  // a stage may wait for a slot while it processes frames, so the times overlap: the waits
                   // get only the width that `busy` leaves free
    for (int k = 0; k < 3; ++k) {
        const f32 next = std::min(x + shares[k] * width, at.x + width);
        if (next > x + 0.5F) d->AddRectFilled(ImVec2(x, low.y), ImVec2(next, low.y + height), tones[k]);
        x = next;
    }
    const std::string text = fmt::format("{:.0f}%", t.busy * 100);
    d->AddText(ImVec2(at.x + width + number - ImGui::CalcTextSize(text.c_str()).x, at.y), c.text,
               text.c_str());
    ui::tip(fmt::format(
        "green: busy (a frame in progress)  {:.1f} %\nblue: waiting for a frame  {:.1f} %\norange: "
        "waiting for a free slot  {:.1f} %\n"
        "waiting for its turn on the GPU  {:.1f} %\n"
        "waiting for its own frames, part of busy  {:.1f} %",
        t.busy * 100, t.wait_input * 100, t.wait_output * 100, t.wait_turn * 100, t.wait_own * 100));
}

void number_cell(const std::string& text, ImU32 color) {
    ImGui::TableNextColumn();
    ui::right_text(text, color);
}

std::string bytes_text(u64 bytes) { return bytes > 0 ? ui::bytes(static_cast<f64>(bytes)) : "-"; }

void stage_buttons(model& m, const std::string& label, bool alive, bool paused, bool keys) {
    const auto hint = [&](const char* name) { return keys && !m.read_only ? name : ""; };
    const bool watching = m.phase == run_phase::watching && !m.read_only, can = watching && alive;
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(5), 0));
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(4), 0));
    if (ui::button("stages.kill." + label, "kill -9", hint("Ctrl+K"),
                   m.tip_of("kill this process with SIGKILL"), true, can))
        m.ask(run::kill_request{label});
    ImGui::SameLine();
    if (paused) {
        if (ui::button("stages.cont." + label, "cont.", hint("C"), m.tip_of("continue it"), false, can))
            m.ask(run::seat_request{seat_order::cont, label});
    } else if (ui::button("stages.stop." + label, " stop ", hint("Ctrl+S"),
                          m.tip_of("pause it: the pipeline waits, and no process is replaced"), false, can)) {
        m.ask(run::seat_request{seat_order::stop, label});
    }
    ImGui::SameLine();
    if (ui::button("stages.restart." + label, "restart", hint("Ctrl+R"),
                   m.tip_of("replace it by a new process"), false, watching))
        m.ask(run::seat_request{seat_order::restart, label});
    ImGui::PopStyleVar(2);
}

void draw_remote_stages(model& m) {
    for (const host_report& h : m.hosts) {
        draw_host(m, h);
        for (const seat_report& s : h.seats) draw_remote_row(m, h, s);
    }
}

std::size_t remote_rows(const model& m) noexcept {
    std::size_t rows = 0;
    for (const host_report& h : m.hosts) rows += 1 + h.seats.size();
    return rows;
}

}  // namespace carousel::viewer
