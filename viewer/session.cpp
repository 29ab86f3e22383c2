#include "viewer/session.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/scene.hpp"
#include "viewer/picture_store.hpp"

namespace carousel::viewer {
namespace {
constexpr u64 look_every_ns = 250 * ns_per_ms;
constexpr u64 check_every_ns = 250 * ns_per_ms;
constexpr u64 first_tap_delay_ns = 250 * ns_per_ms, longest_tap_delay_ns = 2 * ns_per_s;
}  // namespace

session::session(session_options options) : options_(std::move(options)) {
    scene_writer_ = 1 + static_cast<u32>(::getpid()) % 3;
    if (options_.supervisor > 0) supervisor_ = {options_.supervisor, shm::start_time_of(options_.supervisor)};
}

session::~session() {
    tap_.reset();
    sampler_.reset();
}

void session::update(model& m, picture_store& store) {
    const u64 now = now_ns();
    m.now_ns = now;
    m.notice = m.phase == run_phase::watching ? "" : attach_problem_;
    if (!m.chosen.empty()) {
        detach(m, run_phase::waiting, "");
        options_.name = std::exchange(m.chosen, "");
        next_look_ns_ = 0;
    }
    if (m.phase == run_phase::watching) check_alive(m, now);
    if (m.phase != run_phase::watching) look_for_run(m, now);
    if (m.phase == run_phase::watching) {
        read(m);
        open_tap(m, now);
    }
    if (tap_) poll_picture(m, store, now);
    for (const reply& r : control_.take_replies())
        m.events.add({now, r.ok ? telemetry::event_kind::info : telemetry::event_kind::warning, shm::none,
                      fmt::format("{} {}: {}", r.asked.fault.empty() ? r.asked.verb : r.asked.fault, r.asked.stage, r.message)});
    m.report = control_.report();
    if (const auto& c = m.events.last_crash(); c && c->how.empty())
        if (const seat_report* r = m.report_of(c->seat); r != nullptr && r->restarts >= c->epoch - 1) m.events.explain(c->seat, r->last_exit);
}

void session::look_for_run(model& m, u64 now) {
    if (now < next_look_ns_) return;
    next_look_ns_ = now + look_every_ns;
    std::vector<run_info> runs;
    if (options_.name.empty()) {
        runs = living_runs();
        if (options_.supervisor > 0) std::erase_if(runs, [this](const run_info& r) { return r.supervisor.pid != options_.supervisor; });
    } else if (std::optional<run_info> r = read_run(runs_folder() + "/" + options_.name); r && lives(*r)) {
        runs.push_back(std::move(*r));
    }
    m.choices = runs;
    if (runs.empty()) attach_problem_.clear();
    // A run that has ended is shown until another one takes its place, or another supervisor takes it over.
    if (runs.size() == 1) attach(m, runs[0]);
}

void session::attach(model& m, const run_info& r) {
    try {
        observed_.emplace(shm::segment::observe(r.run_id));
        attached_.emplace(shm::segment::attach(r.run_id));
    } catch (const error& e) {
        observed_.reset();
        attached_.reset();
        attach_problem_ = m.notice = e.what();
        return;
    }
    attach_problem_.clear();
    m.notice.clear();
    sampler_ = std::make_unique<sampler>(observed_->block());
    tracker_ = telemetry::rate_tracker();
    m.past.clear();
    m.bars.clear();
    m.run = r;
    m.phase = run_phase::watching;
    m.selected_seat = 0;
    m.picture.problem.clear();
    control_.aim(r.socket());
    next_tap_ns_ = 0;
    tap_delay_ns_ = first_tap_delay_ns;
    scene_seen_ = ~u64{0};
}

void session::detach(model& m, run_phase phase, const std::string& notice) {
    drop_tap(m, "");
    if (m.phase == run_phase::watching && !notice.empty()) m.events.add({now_ns(), telemetry::event_kind::warning, shm::none, notice});
    sampler_.reset();
    observed_.reset();
    attached_.reset();
    control_.aim("");
    m.phase = phase;
}

void session::check_alive(model& m, u64 now) {
    if (now < next_check_ns_) return;
    next_check_ns_ = now + check_every_ns;
    const std::optional<run_info> r = read_run(m.run.folder);
    const bool replaced = r && r->run_id != m.run.run_id;
    if (r && !replaced && lives(*r)) {  // perhaps under another supervisor
        m.run = *r;
        return;
    }
    if (!replaced && lives(m.run)) return;
    read(m);  // the last words
    detach(m, run_phase::ended, replaced ? fmt::format("{} was replaced by a new run", m.run.name) : fmt::format("{} has ended", m.run.name));
    next_look_ns_ = 0;
}

void session::read(model& m) {
    telemetry::read_snapshot(observed_->block(), m.snap);
    sampler_->collect(m.events, m.bars, busy_ns_);
    for (std::size_t k = 0; k < m.snap.stages.size() && k < busy_ns_.size(); ++k) m.snap.stages[k].sampled_busy_ns = busy_ns_[k];
    m.rates = tracker_.feed(m.snap);
    m.past.feed(m.snap, m.rates);
    for (const telemetry::crash& c : m.events.take_deaths()) m.past.mark(c.died_ns, c.stage);
    if (const u64 version = ring::load(observed_->block().scene.current); version != scene_seen_) {  // ours, or another writer's
        scene_seen_ = version;
        m.scene = m.snap.scene;
    }
    if (m.snap.supervisor_heartbeat_ns != 0 && m.now_ns > m.snap.supervisor_heartbeat_ns + 3 * ns_per_s)
        m.notice = fmt::format("the supervisor has given no sign of life for {:.0f} s",
                               static_cast<f64>(m.now_ns - m.snap.supervisor_heartbeat_ns) / 1e9);
}

void session::open_tap(model& m, u64 now) {
    if (tap_ || now < next_tap_ns_ || m.snap.links.empty()) return;
    try {
        tap_ = std::make_unique<tap>(attached_->block(), m.run.socket(), options_.stage, options_.use_gl ? make_interop : nullptr, options_.way);
        m.picture.problem.clear();
        m.picture.stage = tap_->stage();
        m.picture.path = tap_->path();
        tap_delay_ns_ = first_tap_delay_ns;
    } catch (const std::exception& e) {
        m.picture.problem = e.what();
        next_tap_ns_ = now + tap_delay_ns_;
        tap_delay_ns_ = std::min(tap_delay_ns_ * 2, longest_tap_delay_ns);
    }
}

void session::poll_picture(model& m, picture_store& store, u64 now) {
    picture_model& p = m.picture;
    if (p.paused && !p.step) {
        held_ = true;
        return;
    }
    if (std::exchange(held_, false)) tap_->refresh();  // what was taken meanwhile is old
    try {
        const bool resized = p.width != tap_->width() || p.height != tap_->height();
        if (resized || p.pixels == nullptr) {
            if (const std::string why = store.resize(tap_->width(), tap_->height()); !why.empty()) throw device_error(why);
        }
        const discarded lost = tap_->losses();
        p.revoked = lost.revoked;
        p.torn = lost.torn;
        p.voids = lost.voids;
        if (!tap_->poll()) return;
        const u64 began = now_ns();
        if (tap_->on_gpu())
            tap_->show(store.raw_texture());
        else
            store.upload(tap_->pixels());
        p.width = tap_->width();
        p.height = tap_->height();
        p.pixels = tap_->pixels();
        p.sequence = tap_->sequence();
        p.copy_ms = tap_->copy_ms();
        p.show_ms = static_cast<f64>(now_ns() - began) / 1e6;
        ++p.shown_frames;
        p.shown_ns = now;
        p.step = false;
    } catch (const std::exception& e) {
        drop_tap(m, fmt::format("the picture stopped: {}", e.what()));
        next_tap_ns_ = now + longest_tap_delay_ns;
    }
}

// The texture keeps the last whole frame; only the host copy goes.
void session::drop_tap(model& m, const std::string& why) noexcept {
    m.picture.pixels = nullptr;
    m.picture.problem = why;
    tap_.reset();
}

void session::obey(model& m) {
    for (command& c : m.commands) control_.send(std::move(c));
    m.commands.clear();
    if (!m.scene_changed) return;
    m.scene_changed = false;
    if (!attached_ || m.phase != run_phase::watching) return;
    // Lost to another writer: what this one saw is old, so is its change; the next one of the mouse comes soon.
    (void)ring::write_scene(attached_->block().scene, scene_writer_, m.scene);
    scene_seen_ = ring::load(attached_->block().scene.current);
}

bool session::is_over() const { return options_.supervisor > 0 && !shm::is_alive(supervisor_); }

void session::end_run(const model& m) {
    if (m.phase == run_phase::watching) {
        control_.send({"shutdown", "", 0});
        control_.flush(2.0);
    } else if (const shm::unique_fd pidfd(options_.supervisor > 0 ? shm::open_pidfd(supervisor_) : -1); pidfd) {
        (void)shm::signal_pidfd(pidfd.get(), SIGINT);
    }
}

}  // namespace carousel::viewer
