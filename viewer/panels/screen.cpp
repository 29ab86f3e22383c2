#include "viewer/panels/screen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "viewer/panels/parts.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"

namespace carousel::viewer {
namespace {

using theme::px;

struct shortcut {
    std::string keys, what;
    bool changes_run = false;  ///< has no effect in a read-only viewer
};

/// "Ctrl+H G X ...": the keys of all faults.
std::string fault_keys() {
    std::string keys = "Ctrl+";
    for (const shm::injected_fault_row& row : shm::injected_faults)
        keys.append(&row == shm::injected_faults.data() ? "" : " ").push_back(row.key);
    return keys;
}

const std::vector<shortcut>& shortcuts() {
    static const std::vector<shortcut> all = {
        {"F1", "this help"},
        {"L", "light or dark"},
        {"P", "write the window as a PNG into the working directory"},
        {"Shift+P", "write the frame itself as a PNG"},
        {"N", "watch another run; the window never changes its run automatically"},
        {"Ctrl+Q", "close the viewer; the pipeline continues unless it was started with the viewer"},
        {"", ""},
        {"D", "next panel of the shared tab: events, depth, frames"},
        {"Ctrl+F  /", "search in the events; Esc clears the search"},
        {"1 ... 9", "choose a stage; Ctrl with up or down: the one above or below"},
        {"click a slot", "the picture of the frame in it; Esc closes it"},
        {"", "Commands that affect a stage need Ctrl:", true},
        {"Ctrl+K", "kill -9 the chosen stage", true},
        {"Ctrl+R", "replace it by a new process", true},
        {"Ctrl+S", "pause it: the pipeline waits; C (without Ctrl) continues it", true},
        {fault_keys(), "inject a fault at its next frame; the buttons of the stages show the faults' names",
         true},
        {"", ""},
        {"space  .", "pause the picture; step to the newest frame"},
        {"F  0  + -", "fit, 1:1, zoom; the wheel zooms about the mouse"},
        {"arrows", "move the picture; also middle drag, or Shift and left drag"},
        {"[  ]", "exposure of the shown picture"},
        {"Shift+R G B A", "channels"},
        {"U  Y  B", "next ring, next plane of it; next ring for the same frame on the right"},
        {"E  V", "next range of values, next colours"},
        {"Z", "freeze the timeline; wheel and drag zoom and move it"},
        {"Shift+T", "time range of the plots"},
        {"", ""},
        {"left drag", "turn the camera; right drag moves it, Ctrl and wheel zoom", true},
        {"M  W  O", "next shading (first choice), wireframe (first switch), reset", true},
    };
    return all;
}

std::string state_text(const model& m) {
    if (m.phase == run_phase::waiting) return "waiting";
    if (m.phase == run_phase::ended) return "ended";
    if (m.snap.ended()) return "complete";
    return m.snap.end == ring::end_stopping ? "stopping" : "running";
}

}  // namespace

void screen::draw(model& m, picture_store& store, const std::string& window_text) {
    ui::begin_marks();
    if (attached_run_ != m.run.run_id) {
        attached_run_ = m.run.run_id;
        for (placed_panel& p : panels_) p.what->attach(m);
    }
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos(ImVec2(0, 0));
    ImGui::SetNextWindowSize(size);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
    const int flags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                      ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                      ImGuiWindowFlags_NoScrollWithMouse;
    ImGui::PushStyleColor(ImGuiCol_WindowBg, theme::with_alpha(theme::colors().background, 0));
    ImGui::Begin("Carousel", nullptr, flags);
    ImGui::PopStyleColor();
    ImGui::PopStyleVar(2);
    const f32 edge = px(8), head = px(40);
    const bool asks = m.phase == run_phase::waiting && m.snap.stages.empty();
    ImDrawList* d = ImGui::GetWindowDrawList();
    d->AddRectFilled(ImVec2(0, 0), ImVec2(size.x, asks ? size.y : head), theme::colors().background);
    if (!asks) {
        d->AddRectFilled(ImVec2(0, head), ImVec2(edge, size.y), theme::colors().background);
        d->AddRectFilled(ImVec2(size.x - edge, head), size, theme::colors().background);
        d->AddRectFilled(ImVec2(edge, size.y - edge), ImVec2(size.x - edge, size.y),
                         theme::colors().background);
    }
    draw_head(m, window_text, ImVec2(edge, 0), ImVec2(size.x - edge, head));
    const ImVec2 low(edge, head), high(std::max(edge + 1, size.x - edge), std::max(head + 1, size.y - edge));
    if (asks)
        draw_choice(m, low, high);
    else
        layout_.draw(panels_, m, store, low, high);
    ImGui::End();
    if (!asks) draw_slot_window(m, store);
    if (m.help) draw_help(m);
    if (m.choosing) draw_chooser(m);
}

void screen::draw_head(model& m, const std::string& window_text, ImVec2 low, ImVec2 high) {
    const theme::palette& c = theme::colors();
    ImDrawList* d = ImGui::GetWindowDrawList();
    const f32 middle = (low.y + high.y) / 2;
    const f32 buttons = high.x - px(214), end = std::max(low.x, buttons - px(8));
    const auto put = [&](f32 x, ImFont* font, const std::string& whole, ImU32 color) {
        if (end - x < px(24)) return end;  // there is not enough room even for an ellipsis
        ImGui::PushFont(font);
        const std::string text = ui::fitted(whole, end - x);
        d->AddText(ImVec2(x, middle - ImGui::GetFontSize() / 2), color, text.c_str());
        const f32 width = ImGui::CalcTextSize(text.c_str()).x;
        ImGui::PopFont();
        ui::mark(fmt::format("head.text.{}", text), ImVec2(x, low.y), ImVec2(x + width, high.y));
        return x + width;
    };
    const auto put_name = [&](f32 x, const std::string& name) {  // this length leaves room for the state and
                                                                 // the rate
        return put(x, ImGui::GetFont(), ui::fitted(name, std::max(px(60), (end - x) * 0.4F)), c.text);
    };
    d->PushClipRect(low, ImVec2(end, high.y), true);
    f32 x = put(low.x + px(4), theme::large_font(), "Carousel", c.text) + px(18);
    if (m.phase != run_phase::waiting || !m.snap.stages.empty()) {
        const std::string state = state_text(m);
        x = put_name(x, m.snap.pipeline.empty() ? m.run.name : m.snap.pipeline) + px(10);
        d->AddCircleFilled(ImVec2(x + px(4), middle), px(4), state == "running" ? c.good : c.warning);
        x = put(x + px(13), ImGui::GetFont(), state, state == "running" ? c.good : c.warning) + px(18);
        if (!m.off_gpu.stages.empty())
            x = put(x, ImGui::GetFont(),
                    fmt::format("{} on the CPU, not {}",
                                m.off_gpu.stages.size() == 1
                                    ? m.off_gpu.stages.front()
                                    : fmt::format("{} stages", m.off_gpu.stages.size()),
                                m.off_gpu.configured),
                    c.warning) +
                px(18);
        if (m.read_only) x = put(x, ImGui::GetFont(), "read-only", c.accent) + px(18);
        const bool known = !m.past.samples().empty();
        x = put(x, theme::large_font(),
                ui::number(known ? static_cast<f64>(m.past.samples().back().delivered_fps) : 0, known),
                c.text) +
            px(5);
        x = put(x, ImGui::GetFont(), "frames/s delivered", c.muted) + px(18);
        if (known && m.past.samples().back().end_to_end_p50_ms > 0)
            x = put(x, ImGui::GetFont(),
                    fmt::format("end to end {} ms (p99 {} ms)",
                                ui::number(static_cast<f64>(m.past.samples().back().end_to_end_p50_ms)),
                                ui::number(static_cast<f64>(m.past.samples().back().end_to_end_p99_ms))),
                    c.muted) +
                px(18);
        if (const telemetry::whole_latency l = telemetry::whole_latency_of(m.rates);
            l.from_capture_p50_ms > 0)
            x = put(x, ImGui::GetFont(),
                    fmt::format("from capture {} ms (p99 {} ms)", ui::number(l.from_capture_p50_ms),
                                ui::number(l.from_capture_p99_ms)),
                    c.muted) +
                px(18);
        if (m.snap.created_ns != 0 && m.now_ns > m.snap.created_ns)
            x = put(x, ImGui::GetFont(),
                    "up " + ui::duration(static_cast<f64>(m.now_ns - m.snap.created_ns) / 1e9), c.muted) +
                px(18);
    }
    if (!m.notice.empty()) {
        put(x, ImGui::GetFont(), m.notice, c.bad);
    } else if (buttons - x > px(200)) {
        const std::array parts{"run " + m.run.run_id, window_text};
        ImGui::PushFont(theme::small_font());
        const std::string about = ui::fitting_parts(parts, end - x);
        ImGui::PopFont();
        if (!about.empty()) put(x, theme::small_font(), about, c.faint);
    }
    d->PopClipRect();
    ImGui::SetCursorScreenPos(ImVec2(std::max(low.x, buttons), middle - ImGui::GetFrameHeight() / 2));
    if (ui::button("head.runs", "runs", "N",
                   "watch another run; the window never changes its run automatically"))
        m.choosing = !m.choosing;
    ImGui::SameLine();
    if (ui::button("head.theme", m.kept.dark ? "light" : "dark", "L", "light or dark"))
        m.kept.dark = !m.kept.dark;
    ImGui::SameLine();
    if (ui::button("head.shot", "picture", "P", "write this window as a PNG into the working directory"))
        m.screenshot = true;
    ImGui::SameLine();
    if (ui::button("head.help", "help", "F1", "help")) m.help = !m.help;
}

namespace {

/// One button per run; a click selects the run to watch.
void draw_runs(model& m) {
    for (std::size_t k = 0; k < m.choices.size(); ++k) {
        const run::record& r = m.choices[k];
        const std::string number = k < 9 ? fmt::format("{}", k + 1) : "";
        const bool here =
            m.phase == run_phase::watching && r.folder == m.run.folder && r.run_id == m.run.run_id;
        const std::string label = fmt::format("{}   {}   pid {}   {}{}", number, r.name, r.supervisor.pid,
                                              r.file, here ? "   (this one)" : "");
        if (!ui::button("choice." + r.name, label.c_str(), number.c_str(), "watch this one", false, !here))
            continue;
        m.chosen = r.name;
        m.choosing = false;
    }
}

/// Draws a window over all others. Its centre is at the fraction `at` of the display's height. If `width` is
/// 0, the window is as wide as its content.
template <typename Content>
void draw_in_front(const char* name, const char* heading, f32 at, f32 width, const Content& content) {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos(ImVec2(size.x / 2, size.y * at), ImGuiCond_Always, ImVec2(0.5F, 0.5F));
    if (width > 0) ImGui::SetNextWindowSize(ImVec2(std::min(width, size.x), 0));
    ImGui::PushStyleColor(ImGuiCol_WindowBg, theme::colors().raised);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(22), px(18)));
    ImGui::SetNextWindowFocus();
    if (ImGui::Begin(name, nullptr,
                     ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                         ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_AlwaysAutoResize)) {
        ImGui::PushFont(theme::large_font());
        ui::text(heading);
        ImGui::PopFont();
        content();
    }
    const ImVec2 low = ImGui::GetWindowPos();
    ui::mark(name, low, ImVec2(low.x + ImGui::GetWindowWidth(), low.y + ImGui::GetWindowHeight()));
    ImGui::End();
    ImGui::PopStyleVar();
    ImGui::PopStyleColor();
}

}  // namespace

void screen::draw_chooser(model& m) {
    const char* heading = m.choices.empty() ? "No pipeline is running" : "Runs that can be watched";
    draw_in_front("chooser", heading, 0.3F, 0, [&m] {
        draw_runs(m);
        ui::small_text("N or Esc closes this without a change.");
    });
}

void screen::draw_choice(model& m, ImVec2 low, ImVec2 high) {
    const f32 width = std::min(px(560), high.x - low.x);
    ImGui::SetCursorScreenPos(ImVec2(low.x + (high.x - low.x - width) / 2, low.y + (high.y - low.y) * 0.3F));
    ImGui::BeginGroup();
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
    ImGui::PushFont(theme::large_font());
    ui::text(m.choices.size() > 1 ? "Several pipelines are running" : "No pipeline is running yet");
    ImGui::PopFont();
    if (m.choices.size() > 1) {
        ui::text("Choose one, or name it on the command line with -p NAME.", theme::colors().muted);
        draw_runs(m);
    } else {
        ui::text("This window finds it automatically. In a terminal:", theme::colors().muted);
        ImGui::Dummy(ImVec2(1, px(4)));
        ui::text("    ./pipelines/launch");
        ui::text("    carousel run pipelines/demo.toml");
        ImGui::Dummy(ImVec2(1, px(4)));
        ui::text("Searched in " + run::runs_folder(), theme::colors().faint);
    }
    if (!m.notice.empty()) ui::text(m.notice, theme::colors().bad);
    ImGui::PopTextWrapPos();
    ImGui::EndGroup();
    ui::mark("choice");
}

void screen::draw_help(const model& m) {
    draw_in_front("help", "Keys and mouse", 0.5F, px(700), [&m] {
        ImGui::Dummy(ImVec2(1, px(4)));
        for (const shortcut& s : shortcuts()) {
            if (s.changes_run && m.read_only) continue;
            if (s.keys.empty()) {
                ImGui::Dummy(ImVec2(1, px(2)));
                if (!s.what.empty()) ui::small_text(s.what);
                continue;
            }
            ui::text(s.keys, theme::colors().accent);
            ImGui::SameLine(px(160));
            ui::text(s.what);
        }
        ImGui::Dummy(ImVec2(1, px(4)));
        ui::small_text(
            "The viewer reads only the newest frame and never blocks the pipeline. F1 or Esc closes this.");
    });
}

void screen::on_key(model& m, const key_press& k) {
    if (k.key == key::f1) {
        m.help = !m.help;
        return;
    }
    if (k.key == key::escape) {
        // Escape closes what covers the panels; if nothing covers them, it ends the search.
        const bool covered = m.help || m.choosing;
        m.help = m.choosing = false;
        if (covered || close_slot(m)) return;
    }
    if (k.ctrl && k.key == 'Q') {
        m.quit = true;
        return;
    }
    if (!k.ctrl && !k.shift && k.key == 'L') {
        m.kept.dark = !m.kept.dark;
        return;
    }
    if (!k.ctrl && !k.shift && k.key == 'P') {
        m.screenshot = true;
        return;
    }
    if (!k.ctrl && !k.shift && k.key == 'D') {
        layout_.bring_next();
        return;
    }
    const bool question = m.phase == run_phase::waiting && m.snap.stages.empty();
    if (!k.ctrl && !k.shift && k.key == 'N' && !question) {
        m.choosing = !m.choosing;
        return;
    }
    const bool asks = m.choosing || (m.phase == run_phase::waiting && m.choices.size() > 1);
    if (asks && !k.ctrl && k.key >= '1' && k.key <= '9' &&
        static_cast<std::size_t>(k.key - '1') < m.choices.size()) {
        m.chosen = m.choices[static_cast<std::size_t>(k.key - '1')].name;
        m.choosing = false;
        return;
    }
    if (is_search_key(k)) layout_.show(panels_, "events");
    for (placed_panel& p : panels_)
        if (p.what->on_key(m, k)) return;
}

}  // namespace carousel::viewer
