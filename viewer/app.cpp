#include "viewer/app.hpp"

#include <fmt/format.h>
#include <imgui.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <numeric>
#include <span>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/output_file.hpp"
#include "core/process.hpp"
#include "shm/runtime_folder.hpp"
#include "viewer/panels/screen.hpp"
#include "viewer/session/picture_store.hpp"
#include "viewer/session/session.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/ui.hpp"
#include "viewer/watch/picture_choice.hpp"

namespace carousel::viewer {
namespace {

constexpr u64 idle_ns = 100 * ns_per_ms;

volatile std::sig_atomic_t asked_to_end = 0;
void on_signal(int) { asked_to_end = 1; }

struct imgui_owner {
    imgui_owner() {
        IMGUI_CHECKVERSION();
        ImGui::CreateContext();
        ImGui::GetIO().IniFilename = nullptr;  // configuration.hpp stores the layout
    }
    ~imgui_owner() { ImGui::DestroyContext(); }
    imgui_owner(const imgui_owner&) = delete;
    imgui_owner& operator=(const imgui_owner&) = delete;
};

std::unique_ptr<window> open_window(const options& o, const window_options& w) {
    switch (o.kind) {
        case window_kind::glfw:
            return make_glfw_window(w);
        case window_kind::offscreen:
            return make_offscreen_window(w);
        case window_kind::null:
            break;
    }
    return make_null_window(w);
}

class app {
public:
    explicit app(const options& o)
        : options_(o), path_(o.settings_file.empty() ? settings_path() : o.settings_file) {
        model_.kept = load_settings(path_);
        model_.picture.styles = o.styles;
        model_.picture.exposure_stops = static_cast<f32>(o.styles.of[0].exposure);
        if (o.light) model_.kept.dark = false;
        window_options w;
        w.width = o.width > 0 ? o.width : model_.kept.width;
        w.height = o.height > 0 ? o.height : model_.kept.height;
        window_ = open_window(o, w);
        const f32 kept = o.scale > 0 ? o.scale : model_.kept.scale;
        scale_ = std::clamp(kept > 0 ? kept : window_->scale(), 0.5F, 4.0F);
        theme::load_fonts(scale_);
        store_ = window_->has_gl() ? make_gl_store() : make_null_store();
        session_ = std::make_unique<session>(
            session_options{o.name, o.what, window_->has_gl(), o.way, o.supervisor,
                            o.read_only ? client_access::read_only : client_access::full});
    }
    // The session's tap owns GL and CUDA objects, so it is destroyed before the window.
    ~app() {
        session_.reset();
        store_.reset();
        window_.reset();
    }
    app(const app&) = delete;
    app& operator=(const app&) = delete;

    int run() {
        const u64 began = now_ns();
        for (u64 frame = 1;; ++frame) {
            const bool open = draw_one();
            const u64 now = now_ns();
            dump_widgets();
            if (options_.wait_s >= 0 && model_.phase == run_phase::waiting && model_.snap.stages.empty() &&
                now > began + static_cast<u64>(options_.wait_s * 1e9)) {
                if (model_.choices.size() > 1) {
                    std::string names;
                    for (const run::record& r : model_.choices) names += (names.empty() ? "" : ", ") + r.name;
                    log::error("several pipelines are running: {}: choose one with -p NAME", names);
                    return exit_code::usage;
                }
                log::error(
                    "no pipeline{} was running within {} s (searched in {}{}): start one with "
                    "./pipelines/launch",
                    options_.name.empty() ? "" : " named " + options_.name, options_.wait_s,
                    run::runs_folder(), shm::unused_runtime_text());
                return exit_code::usage;
            }
            const bool last = (options_.frames > 0 && frame >= options_.frames) ||
                              (options_.for_s > 0 && now >= began + static_cast<u64>(options_.for_s * 1e9));
            closed_ = !open || model_.quit;
            if (closed_ || last || asked_to_end != 0 || session_->is_over()) break;
            window_->pace(pace(now));
        }
        return finish();
    }

private:
    bool draw_one() {
        session_->update(model_, *store_);
        if (options_.deterministic) model_.now_ns = model_.snap.taken_ns;
        theme::apply(model_.kept.dark, scale_);
        const bool open = window_->begin_frame();
        // before ImGui::Render() clears it
        wheeled_ = ImGui::GetIO().MouseWheel != 0 || ImGui::GetIO().MouseWheelH != 0;
        const std::vector<key_press> keys = window_->take_keys();
        keys_seen_ = !keys.empty();
        for (const key_press& k : keys)  // Esc also ends a search while the user types
            if (!ImGui::GetIO().WantTextInput || k.key == key::escape) screen_.on_key(model_, k);
        screen_.draw(model_, *store_, options_.deterministic ? "" : window_->description());
        ImGui::Render();
        window_->end_frame(ImGui::GetDrawData(), store_->version());
        session_->handle_command(model_);
        stats_.feed(model_);
        if (std::exchange(model_.screenshot, false))
            shot_wanted_ = next_name("carousel", now_ns() / ns_per_s);
        if (std::exchange(model_.picture.save_frame, false)) save_frame();
        if (!shot_wanted_.empty() && save_window(shot_wanted_)) shot_wanted_.clear();
        window_->set_title(model_.run.name.empty() ? "Carousel"
                                                   : fmt::format("Carousel - {}", model_.run.name));
        return open;
    }

    // If nothing moves and there is no input, a few frames per second suffice.
    [[nodiscard]] u64 pace(u64 now) {
        const ImGuiIO& io = ImGui::GetIO();
        u64 moved = model_.picture.shown_frames + model_.picture.repainted + model_.slot_picture.version +
                    model_.events.events().size() + static_cast<u64>(model_.phase) + model_.choices.size();
        for (const telemetry::stage_view& s : model_.snap.stages) moved += s.frames;
        const bool touched =
            io.MouseDelta.x != 0 || io.MouseDelta.y != 0 || ImGui::IsAnyMouseDown() || wheeled_ || keys_seen_;
        if (moved != moved_ || touched) active_ns_ = now;
        moved_ = moved;
        const u64 shortest = static_cast<u64>(1e9 / std::clamp(options_.max_fps, 1.0, 1000.0));
        return now > active_ns_ + ns_per_s ? std::max(shortest, idle_ns) : shortest;
    }

    [[nodiscard]] std::string next_name(const char* what, u64 number) const {
        return fmt::format("{}-{}-{}.png", what, model_.run.name.empty() ? "window" : model_.run.name,
                           number);
    }
    void log_event(bool good, const std::string& text) {
        model_.events.add({model_.now_ns, good ? telemetry::event_kind::info : telemetry::event_kind::warning,
                           shm::none, text});
    }
    void try_write(const std::string& path, std::span<const u8> pixels, u32 width, u32 height) {
        try {
            write_picture(path, pixels, width, height);
            log_event(true, "wrote " + path);
        } catch (const error& e) {
            log_event(false, e.what());
        }
    }
    void save_frame() {
        const picture_model& p = model_.picture;
        std::vector<u8> pixels;
        if (p.pixels != nullptr) {
            const auto* from = reinterpret_cast<const u8*>(p.pixels);
            pixels.assign(from, from + std::size_t{p.width} * p.height * 4);
        } else {
            pixels = store_->read_back();
        }
        try_write(next_name("frame", p.ring_sequence), pixels, p.width, p.height);
    }
    // Returns false if the pixels become available only with the next frame of the window.
    bool save_window(const std::string& path) {
        u32 width = 0, height = 0;
        const std::vector<u8> pixels = window_->read_pixels(width, height);
        if (pixels.empty() && options_.kind == window_kind::glfw) return false;
        try_write(path, pixels, width, height);
        return true;
    }

    [[nodiscard]] nlohmann::json shown_pictures() const {
        nlohmann::json out = nlohmann::json::array();
        for (const shown_picture& p : model_.picture.shown)
            out.push_back({{"stage", p.stage},
                           {"plane", p.plane},
                           {"ring_sequence", p.ring_sequence},
                           {"values", p.scale.of_values},
                           {"low", p.scale.low},
                           {"high", p.scale.high},
                           {"colours", name_of(p.scale.colours)}});
        return out;
    }
    // The file is written under another name and then renamed, so that a reader never finds a partial file.
    void dump_widgets() {
        if (options_.dump_widgets.empty()) return;
        nlohmann::json all = nlohmann::json::object();
        for (const ui::widget& w : ui::marks()) all[w.name] = {w.x, w.y, w.width, w.height};
        const nlohmann::json out{{"widgets", all},
                                 {"run", model_.run.run_id},
                                 {"ring_sequence", model_.picture.ring_sequence},
                                 {"notice", model_.notice},
                                 {"problem", model_.picture.problem},
                                 {"shown", shown_pictures()},
                                 {"note", model_.picture.note},
                                 {"pointed", model_.picture.pointed ? model_.picture.pointed->text : ""},
                                 {"chosen", model_.snap.seat_label(model_.selected_seat)},
                                 {"drawn", ++drawn_}};
        const std::string text = out.dump();
        if (const int failed = write_output_file(options_.dump_widgets,
                                                 {std::as_bytes(std::span(text.data(), text.size()))});
            failed != 0)
            throw output_error("writing " + options_.dump_widgets + ": " + output_cause(failed));
    }

    int finish() {
        if (!options_.screenshot.empty()) {
            u32 width = 0, height = 0;
            std::vector<u8> pixels = window_->read_pixels(width, height);
            if (pixels.empty()) {
                (void)draw_one();
                pixels = window_->read_pixels(width, height);
            }
            write_picture(options_.screenshot, pixels, width, height);
        }
        if (!options_.deterministic) {
            if (options_.kind == window_kind::glfw) window_->size(model_.kept.width, model_.kept.height);
            if (const std::string why = save_settings(path_, model_.kept); !why.empty())
                log::warning("{}", why);
        }
        if (!options_.stats.empty()) stats_.write(options_.stats, model_, *window_);
        // The pipeline is ended only if the user closes the window. If the viewer is killed or receives a
        // signal, the pipeline continues to run.
        if (options_.end_run && closed_) session_->end_run(model_);
        return exit_code::ok;
    }

    options options_;
    std::string path_;
    imgui_owner imgui_;
    model model_;
    std::unique_ptr<window> window_;
    std::unique_ptr<picture_store> store_;
    std::unique_ptr<session> session_;
    screen screen_;
    f32 scale_ = 1;
    std::string shot_wanted_;
    u64 drawn_ = 0;
    stats stats_;
    bool closed_ = false, keys_seen_ = false, wheeled_ = false;
    u64 moved_ = 0, active_ns_ = 0;
};

constexpr std::size_t most_samples = 1U << 20U;  // hours at 60 frames/s

u64 cpu_ns() {
    rusage u{};
    ::getrusage(RUSAGE_SELF, &u);
    const auto ns = [](const timeval& t) {
        return static_cast<u64>(t.tv_sec) * ns_per_s + static_cast<u64>(t.tv_usec) * 1000;
    };
    return ns(u.ru_utime) + ns(u.ru_stime);
}

nlohmann::json summary(std::vector<f32> v) {
    if (v.empty()) return nullptr;
    std::sort(v.begin(), v.end());
    const auto at = [&](f64 p) { return v[static_cast<std::size_t>(p * static_cast<f64>(v.size() - 1))]; };
    return {{"mean", std::accumulate(v.begin(), v.end(), 0.0) / static_cast<f64>(v.size())},
            {"p50", at(0.5)},
            {"p99", at(0.99)}};
}

}  // namespace

int run_viewer(const options& o) {
    asked_to_end = 0;
    for (const int signal : {SIGINT, SIGTERM}) handle_unless_ignored(signal, on_signal);
    return app(o).run();
}

stats::stats() : began_ns_(now_ns()), began_cpu_ns_(cpu_ns()) {}

void stats::feed(const model& m) {
    ++drawn_;
    if (!m.picture.path.empty()) way_ = m.picture.path;
    if (m.picture.shown_frames == shown_before_) return;
    shown_ += m.picture.shown_frames - shown_before_;
    shown_before_ = m.picture.shown_frames;
    if (take_ms_.size() >= most_samples) return;
    take_ms_.push_back(static_cast<f32>(m.picture.copy_ms));
    show_ms_.push_back(static_cast<f32>(m.picture.show_ms));
}

void stats::write(const std::string& path, const model& m, const window& w) const {
    const f64 seconds = std::max(1e-9, static_cast<f64>(now_ns() - began_ns_) / 1e9);
    const nlohmann::json out{
        {"run", m.run.run_id},
        {"window", w.description()},
        {"way", way_},
        {"problem", m.picture.problem},
        {"picture", {m.picture.width, m.picture.height}},
        {"seconds", seconds},
        {"drawn_per_second", static_cast<f64>(drawn_) / seconds},
        {"painted_share", w.painted_share()},
        {"shown", shown_},
        {"shown_per_second", static_cast<f64>(shown_) / seconds},
        {"take_ms", summary(take_ms_)},
        {"show_ms", summary(show_ms_)},
        {"discarded",
         {{"revoked", m.picture.revoked}, {"torn", m.picture.torn}, {"tombstone", m.picture.tombstones}}},
        {"cpu_share", static_cast<f64>(cpu_ns() - began_cpu_ns_) / 1e9 / seconds}};
    output_file(path).write(out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace carousel::viewer
