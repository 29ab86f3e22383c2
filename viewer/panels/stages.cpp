// One row per instance, with its state, its time shares, and buttons that kill or disturb it. If the pipeline
// runs on several hosts, the other hosts and their stages are below these rows.
#include <fmt/format.h>

#include <algorithm>

#include "shm/injected_fault.hpp"
#include "viewer/panels/panel.hpp"
#include "viewer/panels/parts.hpp"
#include "viewer/panels/screen.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

struct state_words {
    std::string text;
    ImU32 color;
};

// The supervisor's report is preferred, because the control block does not contain the states "backoff" and
// "failed".
state_words state_of(const model& m, u32 seat) {
    const theme::palette& c = theme::colors();
    const telemetry::seat_view& s = m.snap.seats[seat];
    if (m.phase == run_phase::ended) return {"ended", c.muted};
    std::string text = s.paused ? "stopped" : telemetry::name_of(s.state);
    const bool dying = s.state == ring::entry_state::doomed || s.unfenced > 0;
    if (const seat_report* r = m.report_of(seat); r != nullptr && r->state && !dying) text = *r->state;
    const ImU32 color = state_color(text);
    return {std::move(text), color};
}

struct column {
    const char* title;
    f32 width;  // interface units; 0: stretches
    bool right;
    const char* help;
};
constexpr column columns[] = {
    {"stage", 0, false, "click, press its number, or Ctrl with up or down, to select it for key commands"},
    {"state", 58, false, "state, as the supervisor reports it"},
    {"pid", 50, true, "process id"},
    {"epoch", 42, true, "epoch: the number of the process on this seat, counted from 1"},
    {"restarts", 55, true, "number of earlier processes on this seat"},
    {"frames/s", 58, true, "frames committed per second, over the last 2 s"},
    {"busy", 74, false,
     "share of time with a frame in progress (green); waiting for input (blue), for a free slot (orange)"},
    {"p50 ms", 50, true, "latency from claim to commit, median of the last 2 s, milliseconds"},
    {"p99 ms", 50, true, "99th percentile of the same"},
    {"beat ms", 52, true, "age of the heartbeat, milliseconds"},
    {"CPU %", 44, true, "of one core"},
    {"memory", 62, true, "resident memory of the process"},
    {"GPU mem", 62, true, "memory of the process on all GPUs, as the driver reports it"},
    {"", 158, false, ""},
};

constexpr int gpu_column = 12;
static_assert(columns[gpu_column].title[0] == 'G');

/// If the table is too narrow, these columns are omitted one after another, so that names and buttons remain:
/// memory, GPU mem, epoch, CPU, beat, p50, restarts, p99, busy.
constexpr int dispensable[] = {11, gpu_column, 3, 10, 9, 7, 4, 8, 6};
constexpr f32 name_width = 76, cell_padding = 9;

class stages_panel final : public panel {
public:
    [[nodiscard]] const char* name() const noexcept override { return "stages"; }
    [[nodiscard]] const char* title() const noexcept override { return "Stages"; }

    void draw(model& m, picture_store&) override {
        if (m.snap.seats.empty()) {
            ui::small_text("no stages yet");
            return;
        }
        m.selected_seat = std::min(m.selected_seat, static_cast<u32>(m.snap.seats.size()) - 1);
        ImGui::PushFont(theme::small_font());
        const int flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY |
                          ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings |
                          ImGuiTableFlags_Hideable;
        const bool on_gpu = std::any_of(m.report.begin(), m.report.end(),
                                        [](const seat_report& r) { return r.gpu_bytes > 0; });
        if (ImGui::BeginTable("stages", static_cast<int>(std::size(columns)), flags,
                              ImGui::GetContentRegionAvail())) {
            ImGui::TableSetupScrollFreeze(0, 1);
            for (const column& c : columns)
                ImGui::TableSetupColumn(
                    c.title,
                    c.width == 0 ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed,
                    c.width == 0 ? 1.0F : px(c.width));
            show_columns(on_gpu);
            draw_titles();
            follower_.begin(m.selected_seat, ImGui::GetWindowHeight());
            for (u32 k = 0; k < m.snap.seats.size(); ++k) draw_row(m, k);
            draw_remote_stages(m);
            ImGui::EndTable();
        }
        ImGui::PopFont();
    }

    [[nodiscard]] f32 wanted_height(const model& m) const override {
        const f32 row = theme::small_font()->FontSize + px(2) + 2 * ImGui::GetStyle().CellPadding.y;
        return frame_height() + static_cast<f32>(m.snap.seats.size() + 1 + remote_rows(m)) * row + px(2);
    }

    bool on_key(model& m, const key_press& k) override {
        if (m.snap.seats.empty()) return false;
        if (!k.ctrl && k.key >= '1' && k.key <= '9' &&
            static_cast<std::size_t>(k.key - '1') < m.snap.seats.size()) {
            m.selected_seat = static_cast<u32>(k.key - '1');
            return true;
        }
        if (k.ctrl && !k.shift && (k.key == key::up || k.key == key::down)) {
            const u32 last = static_cast<u32>(m.snap.seats.size()) - 1, now = std::min(m.selected_seat, last);
            m.selected_seat = k.key == key::down ? std::min(now + 1, last) : now - std::min(now, 1U);
            return true;
        }
        if (k.shift || m.phase != run_phase::watching || m.selected_seat >= m.snap.seats.size()) return false;
        if (m.read_only) return on_disabled_key(m, k);
        if (!k.ctrl) return on_plain_key(m, k.key);
        const std::string label = m.snap.seat_label(m.selected_seat);
        switch (k.key) {
            case 'K':
                m.ask(run::kill_request{label});
                return true;
            case 'S':
                m.ask(run::seat_request{run::seat_order::stop, label});
                return true;
            case 'R':
                m.ask(run::seat_request{run::seat_order::restart, label});
                return true;
            default:
                break;
        }
        for (const shm::injected_fault_row& fault : shm::injected_faults)
            if (k.key == fault.key) {
                m.ask(run::inject_request{label, fault.kind});
                return true;
            }
        return false;
    }

    // The menu injects faults into the selected stage. Actions that have a button in every row can't be
    // chosen in this menu: it only shows their keys.
    void menu(model& m, f32 width) override {
        width -= draw_limit(m, width - px(330));
        if (width < px(330) || m.snap.seats.empty()) return;
        m.selected_seat = std::min(m.selected_seat, static_cast<u32>(m.snap.seats.size()) - 1);
        if (m.read_only) {
            ui::small_text(ui::fitted(read_only_text, width));
            ui::mark("stages.read_only");
            return;
        }
        ImGui::PushFont(theme::small_font());
        ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(5), 0));
        ui::text(fmt::format("{}:", ui::fitted(m.snap.seat_label(m.selected_seat), px(90))),
                 theme::colors().text);
        width -= ImGui::GetItemRectSize().x;
        const auto wide = [](const shm::injected_fault_row& fault) {
            return ImGui::CalcTextSize(label_of(fault).c_str()).x + px(15);
        };
        f32 all = 0;
        for (const shm::injected_fault_row& fault : shm::injected_faults) all += wide(fault);
        static constexpr const char* others =
            "C continue · with Ctrl: K kill -9 · S stop · R restart · fault:";
        if (width > all + ImGui::CalcTextSize(others).x + px(6)) {
            ImGui::SameLine(0, px(6));
            ui::text(others, theme::colors().muted);
        }
        const bool can = m.phase == run_phase::watching && m.snap.seats[m.selected_seat].pid != 0;
        for (const shm::injected_fault_row& fault : shm::injected_faults) {
            if (width -= wide(fault); width < 0) break;  // F1 lists the keys
            ImGui::SameLine(0, px(5));
            const std::string label = label_of(fault), key = fmt::format("Ctrl+{}", fault.key);
            if (ui::button(fmt::format("stages.{}", fault.name), label.c_str(), key.c_str(), fault.help, true,
                           can))
                m.ask(run::inject_request{m.snap.seat_label(m.selected_seat), fault.kind});
        }
        ImGui::PopStyleVar();
        ImGui::PopFont();
    }

private:
    static std::string label_of(const shm::injected_fault_row& fault) {
        return fmt::format("{} {}", fault.key, fault.title);
    }

    /// Logs the reason why a key that sends a command in another viewer has no effect here.
    static bool on_disabled_key(model& m, const key_press& k) {
        const char code = static_cast<char>(k.key);
        bool commands = code == 'C' ? !k.ctrl : code == 'K' || code == 'S' || code == 'R';
        for (const shm::injected_fault_row& fault : shm::injected_faults)
            commands = commands || code == fault.key;
        if (!commands || (!k.ctrl && code != 'C')) return false;
        m.events.add({m.now_ns, telemetry::event_kind::info, shm::none,
                      fmt::format("no action: this viewer is {}", read_only_text)});
        return true;
    }

    // A mistyped letter must not harm the run. So a harmful command needs Ctrl together with its key; if the
    // user presses the key without Ctrl, a hint is logged.
    static bool on_plain_key(model& m, int key) {
        const char k = static_cast<char>(key);
        if (k == 'C') {
            m.ask(run::seat_request{run::seat_order::cont, m.snap.seat_label(m.selected_seat)});
            return true;
        }
        const char* what = k == 'K' ? "kills" : k == 'S' ? "stops" : k == 'R' ? "replaces" : nullptr;
        for (const shm::injected_fault_row& fault : shm::injected_faults)
            if (k == fault.key) what = "harms";
        if (what == nullptr) return false;
        m.events.add({m.now_ns, telemetry::event_kind::info, shm::none,
                      fmt::format("no action: Ctrl+{} {} {}, but {} alone has no effect", k, what,
                                  m.snap.seat_label(m.selected_seat), k)});
        return true;
    }

    /// Draws the pipeline's bottleneck if there is room. Returns the width that it has used.
    static f32 draw_limit(const model& m, f32 room) {
        const telemetry::bottleneck b = m.phase == run_phase::watching
                                            ? telemetry::find_bottleneck(m.snap, m.rates)
                                            : telemetry::bottleneck{};
        const std::string text = telemetry::describe(b, m.snap.stage_name(b.stage), m.snap.fps);
        ImGui::PushFont(theme::small_font());
        const f32 width = text.empty() ? 0 : ImGui::CalcTextSize(text.c_str()).x + px(14);
        const bool shown = width > 0 && width <= room;
        if (shown) {
            using kind = telemetry::bottleneck::kind;
            ui::text(text, b.what == kind::paused || b.what == kind::down ? theme::colors().warning
                                                                          : theme::colors().text);
            ui::mark("stages.limit");
            ui::tip("over the last 2 s: the stage that waits neither for frames nor for free output slots");
            ImGui::SameLine(0, px(14));
        }
        ImGui::PopFont();
        return shown ? width : 0;
    }

    /// Shows those columns for which there is enough room.
    static void show_columns(bool on_gpu) {
        bool shown[std::size(columns)];
        std::fill(std::begin(shown), std::end(shown), true);
        shown[gpu_column] = on_gpu;
        f32 needed = px(name_width);
        for (std::size_t k = 0; k < std::size(columns); ++k)
            needed += shown[k] ? px(columns[k].width + cell_padding) : 0;
        const f32 room = ImGui::GetContentRegionAvail().x;
        for (const int k : dispensable) {
            if (needed <= room) break;
            if (shown[k]) needed -= px(columns[k].width + cell_padding);
            shown[k] = false;
        }
        for (std::size_t k = 0; k < std::size(columns); ++k)
            ImGui::TableSetColumnEnabled(static_cast<int>(k), shown[k]);
    }

    static void draw_titles() {
        ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
        for (int k = 0; k < static_cast<int>(std::size(columns)); ++k) {
            ImGui::TableSetColumnIndex(k);
            if (columns[k].right)
                ui::right_text(columns[k].title, theme::colors().muted);
            else
                ui::text(columns[k].title, theme::colors().muted);
            if (*columns[k].help != '\0') ui::tip(columns[k].help);
        }
    }

    void draw_row(model& m, u32 seat) const {
        const telemetry::seat_view& s = m.snap.seats[seat];
        const bool first = s.stage < m.snap.stages.size() && m.snap.stages[s.stage].first_seat == seat;
        const bool known = first && s.stage < m.rates.stages.size() && m.rates.span_s > 0;
        static const telemetry::stage_rates none;
        const telemetry::stage_rates& r = known ? m.rates.stages[s.stage] : none;
        const theme::palette& c = theme::colors();
        const std::string label = m.snap.seat_label(seat);
        const seat_report* report = m.report_of(seat);
        ImGui::TableNextRow();
        ImGui::PushID(static_cast<int>(seat));
        ImGui::TableNextColumn();
        const f32 top = ImGui::GetCursorScreenPos().y;
        draw_name(m, seat, label);
        const f32 row = theme::small_font()->FontSize + px(4) + 2 * ImGui::GetStyle().CellPadding.y;
        if (m.selected_seat == seat) follower_.at_row(top - px(2), top + row, row);
        ImGui::TableNextColumn();
        const state_words state = state_of(m, seat);
        ui::text(state.text, state.color);
        ui::mark("stages.state." + label);
        if (report != nullptr && report->last_exit) ui::tip("last exit: " + *report->last_exit);
        number_cell(s.pid == 0 ? "-" : fmt::format("{}", s.pid));
        number_cell(fmt::format("{}", s.epoch), c.muted);
        number_cell(fmt::format("{}", s.restarts()), s.restarts() > 0 ? c.warning : c.muted);
        number_cell(first ? ui::number(r.frames_per_second, known) : "");
        ImGui::TableNextColumn();
        if (known) draw_shares(r.time);
        number_cell(first ? ui::number(r.latency_p50_ms, r.latency_p50_ms > 0) : "");
        number_cell(first ? ui::number(r.latency_p99_ms, r.latency_p99_ms > 0) : "");
        const f64 beat_ms = s.heartbeat_ns != 0 && m.now_ns > s.heartbeat_ns
                                ? static_cast<f64>(m.now_ns - s.heartbeat_ns) / 1e6
                                : 0;
        number_cell(s.heartbeat_ns == 0 ? "-" : fmt::format("{:.0f}", beat_ms),
                    beat_ms > 1000 ? c.bad : c.text);
        number_cell(seat < m.rates.cpu.size() && m.rates.span_s > 0
                        ? fmt::format("{:.0f}", m.rates.cpu[seat] * 100)
                        : "-");
        number_cell(bytes_text(report != nullptr ? report->memory_bytes.value_or(0) : 0));
        number_cell(bytes_text(report != nullptr ? report->gpu_bytes : 0));
        ImGui::TableNextColumn();
        stage_buttons(m, label, s.pid != 0, s.paused || (report != nullptr && report->is_paused()), true);
        ImGui::PopID();
    }

    static void draw_name(model& m, u32 seat, const std::string& label) {
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const f32 height = ImGui::GetFontSize(), width = ImGui::GetContentRegionAvail().x;
        const int flags = ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowItemOverlap;
        if (ImGui::Selectable("##row", m.selected_seat == seat, flags, ImVec2(0, height + px(2))))
            m.selected_seat = seat;
        ui::mark("stages.row." + label, at, ImVec2(at.x + width, at.y + height));
        const u32 stage = m.snap.seats[seat].stage;
        ImDrawList* d = ImGui::GetWindowDrawList();
        d->AddRectFilled(ImVec2(at.x, at.y + px(2)), ImVec2(at.x + px(4), at.y + height),
                         theme::stage_color(stage == shm::none ? 7 : stage));
        d->AddText(ImVec2(at.x + px(9), at.y + px(1)), theme::colors().text,
                   ui::fitted(label, std::max(px(30), width - px(10))).c_str());
    }

    ui::row_follower follower_;
};

}  // namespace

std::unique_ptr<panel> make_stages_panel() { return std::make_unique<stages_panel>(); }

}  // namespace carousel::viewer
