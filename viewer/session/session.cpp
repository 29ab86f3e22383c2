#include "viewer/session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "telemetry/snapshot.hpp"
#include "viewer/session/picture_store.hpp"
#include "viewer/window/window.hpp"

namespace carousel::viewer {
namespace {
constexpr u64 poll_every_ns = 250 * ns_per_ms;
constexpr u64 check_every_ns = 250 * ns_per_ms, settings_every_ns = 2 * ns_per_s;
constexpr u64 first_tap_delay_ns = 250 * ns_per_ms, longest_tap_delay_ns = 2 * ns_per_s;
}  // namespace

session::session(session_options options) : options_(std::move(options)), control_(options_.allowed) {
    if (options_.supervisor > 0) supervisor_ = {options_.supervisor, shm::start_time_of(options_.supervisor)};
}

session::~session() {
    slots_.reset();
    tap_.reset();
    sampler_.reset();
}

void session::update(model& m, picture_store& store) {
    const u64 now = now_ns();
    m.now_ns = now;
    if (!std::exchange(begun_, true)) m.picture.wanted = choice_ = options_.what;
    m.read_only = options_.allowed == client_access::read_only;
    m.notice = m.phase == run_phase::watching ? "" : attach_problem_;
    if (!m.chosen.empty()) {
        detach(m, run_phase::waiting, "");
        m.run = {};  // discards all data of the last run, because the user has chosen another run
        options_.name = std::exchange(m.chosen, "");
        next_poll_ns_ = 0;
    }
    if (m.phase == run_phase::watching) check_alive(m, now);
    if (m.phase != run_phase::watching || m.choosing) find_run(m, now);
    if (m.phase == run_phase::ended) m.notice = m.ending;
    log_replies(m, now);  // done before the block is read, so that the values that are read include the
                          // changes
    if (m.phase == run_phase::watching) {
        read(m);
        follow_choice(m, store);
        open_tap(m, now);
    }
    if (tap_) poll_picture(m, store, now);
    sample_slot(m);
    const auto& at = m.picture.pointer;
    m.picture.pointed = tap_ && at ? tap_->pixel_at(at->first, at->second) : std::nullopt;
    m.report = control_.report();
    m.off_gpu = control_.run_state().off_gpu;
    take_hosts(m, now);
    if (const auto& c = m.events.last_crash(); c && c->how.empty())
        if (const seat_report* r = m.report_of(c->seat);
            r != nullptr && r->restarts.value_or(0) + 1 >= c->turn)
            m.events.explain(c->seat, r->last_exit.value_or(""));
}

// If the supervisor does not answer, and after the end of the run, the last known hosts are kept.
void session::take_hosts(model& m, u64 now) {
    std::vector<host_report> reported = control_.hosts();
    if (reported.empty()) return;
    for (telemetry::run_event& e : changes(m.hosts, reported, now)) m.events.add(std::move(e));
    m.hosts = std::move(reported);
}

void session::log_replies(model& m, u64 now) {
    for (const reply& r : control_.take_replies()) {
        if (std::holds_alternative<run::set_request>(r.asked.what) && !parameters_.answered(r, now))
            continue;  // not logged, because dragging a slider sends many requests
        std::string what = describe(r.asked);
        if (r.message.rfind(what + ":", 0) == 0)
            what.clear();  // the supervisor's sentence already names the command
        m.events.add({now, r.ok ? telemetry::event_kind::info : telemetry::event_kind::warning, shm::none,
                      what.empty() ? r.message : fmt::format("{}: {}", what, r.message)});
    }
}

void session::find_run(model& m, u64 now) {
    if (now < next_poll_ns_) return;
    next_poll_ns_ = now + poll_every_ns;
    std::vector<run::record> runs = run::watchable_runs();
    if (options_.supervisor > 0)
        std::erase_if(runs, [this](const run::record& r) { return r.supervisor.pid != options_.supervisor; });
    m.choices = runs;
    if (m.phase == run_phase::watching) return;
    if (m.phase == run_phase::ended) {  // only the same run is watched again: a supervisor may still take it
                                        // over
        std::erase_if(runs, [&m](const run::record& r) {
            return r.folder != m.run.folder || r.run_id != m.run.run_id;
        });
        if (runs.empty() || observer_->poll().liveness.state != run::liveness::led) return;
    } else if (!options_.name.empty()) {
        std::erase_if(runs, [this](const run::record& r) {
            return r.folder != run::runs_folder() + "/" + options_.name;
        });
    }
    if (runs.empty()) attach_problem_.clear();
    if (runs.size() == 1) attach(m, runs[0]);
}

void session::attach(model& m, const run::record& r) {
    const bool same = m.run.folder == r.folder && m.run.run_id == r.run_id;
    try {
        observe(r);
    } catch (const error& e) {
        if (m.phase == run_phase::waiting) observer_.reset();
        attach_problem_ = m.notice = e.what();
        return;
    }
    begin_with_block(m);
    attach_problem_.clear();
    m.notice.clear();
    m.ending.clear();
    if (!same) {
        parameters_.forget(m);
        m.past.clear();
        m.selected_seat = 0;
        m.slot_picture = {};
        m.hosts.clear();
    }
    m.run = r;
    m.phase = run_phase::watching;
    m.picture.problem.clear();
    control_.aim(r.socket(), r.run_id);
}

// Frames are read under a lease, which needs a writable mapping of the control block. A read-only viewer also
// works where it may not write, for example in a container with a read-only mount of /dev/shm: everything
// except the pictures is shown.
void session::observe(const run::record& r) {
    no_pictures_.clear();
    try {
        run::observer found(r, run::observer::access::take_leases);
        observer_.emplace(std::move(found));
    } catch (const error& e) {
        if (options_.allowed != client_access::read_only) throw;
        run::observer found(r, run::observer::access::poll);
        observer_.emplace(std::move(found));
        no_pictures_ = fmt::format("no pictures, because frames can't be leased here: {}", e.what());
    }
}

// Restarts all parts that depend on the current control block.
void session::begin_with_block(model& m) {
    drop_tap(m, "");
    slots_.reset();
    sampler_.reset();
    mapped_ = observer_->mapped();
    sampler_ = std::make_unique<sampler>(mapped_->observed->block());
    tracker_ = telemetry::rate_tracker();
    m.bars.clear();
    next_tap_ns_ = next_settings_ns_ = 0;
    tap_delay_ns_ = first_tap_delay_ns;
    schema_known_ = false;
    control_.ask_parameters_again();
}

// The control block stays mapped, so that the session detects whether the run comes back.
void session::detach(model& m, run_phase phase, const std::string& notice) {
    drop_tap(m, "");
    if (m.phase == run_phase::watching && !notice.empty())
        m.events.add({now_ns(), telemetry::event_kind::warning, shm::none, notice});
    slots_.reset();
    sampler_.reset();
    if (observer_) observer_->stop_leasing();
    mapped_.reset();
    control_.aim("", "");
    m.phase = phase;
}

void session::check_alive(model& m, u64 now) {
    if (now < next_check_ns_) return;
    next_check_ns_ = now + check_every_ns;
    const run::observation present = observer_->poll();
    m.run = observer_->run();
    if (present.recreated) begin_with_block(m);
    for (const run::run_update& n : present.updates) m.events.add({now_ns(), n.kind, shm::none, n.text});
    if (present.liveness.state == run::liveness::over) {
        read(m);  // the final state
        m.ending = fmt::format("{} has ended: {}", m.run.name, present.liveness.ending);
        detach(m, run_phase::ended, m.ending);
        next_poll_ns_ = 0;
    }
}

void session::read(model& m) {
    telemetry::read_snapshot(observer_->block(), m.snap);
    sampler_->collect(m.events, m.bars);
    m.rates = tracker_.feed(m.snap);
    m.past.feed(m.snap, m.rates);
    for (const telemetry::crash& c : m.events.take_deaths()) m.past.mark(c.died_ns, c.stage);
    if (!schema_known_)
        if (std::optional<run::parameter_state> published = control_.parameters()) {
            schema_known_ = true;
            parameters_.take(m, std::move(published->schema));
        }
    parameters_.read(m);
    if (m.now_ns >= next_settings_ns_) {
        next_settings_ns_ = m.now_ns + settings_every_ns;
        m.settings_of = read_stage_settings(m.run.folder);
    }
    if (std::string notice = observer_->notice(m.now_ns, m.snap.supervisor_heartbeat_ns); !notice.empty())
        m.notice = std::move(notice);
}

void session::open_tap(model& m, u64 now) {
    if (tap_ || now < next_tap_ns_ || m.snap.links.empty()) return;
    if (!mapped_->attached) {
        m.picture.problem = no_pictures_;
        return;
    }
    try {
        tap_ =
            std::make_unique<tap>(mapped_->attached->block(), m.run.socket(), choice_,
                                  options_.use_gl ? make_interop : nullptr, options_.way, m.picture.styles);
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

// If another ring or plane is chosen, a new tap is opened. If another range or colour map is chosen, the
// shown frame is only painted again.
void session::follow_choice(model& m, picture_store& store) {
    if (!(m.picture.wanted == choice_)) {
        choice_ = m.picture.wanted;
        drop_tap(m, "");
        next_tap_ns_ = 0;
        tap_delay_ns_ = first_tap_delay_ns;
    }
    if (tap_ && tap_->set_styles(m.picture.styles)) show_frame(m, store, false);
}

void session::poll_picture(model& m, picture_store& store, u64 now) {
    picture_model& p = m.picture;
    if (p.paused && !p.step) {
        was_paused_ = true;
        return;
    }
    if (std::exchange(was_paused_, false))
        tap_->refresh();  // drops the frame that the tap has taken during
                          // the pause
    try {
        const bool resized = p.width != tap_->width() || p.height != tap_->height();
        if (resized || p.pixels == nullptr) {
            if (const std::string why = store.resize(tap_->width(), tap_->height()); !why.empty())
                throw device_error(why);
        }
        const discarded lost = tap_->losses();
        p.revoked = lost.revoked;
        p.torn = lost.torn;
        p.tombstones = lost.tombstones;
        if (!tap_->poll()) return;
        show_frame(m, store, true);
        p.shown_ns = now;
        p.step = false;
    } catch (const std::exception& e) {
        drop_tap(m, fmt::format("the picture stopped: {}", e.what()));
        next_tap_ns_ = now + longest_tap_delay_ns;
    }
}

// The sampler exists only while the window of a slot is open, because it keeps the memory of a ring mapped.
void session::sample_slot(model& m) {
    slot_picture_model& p = m.slot_picture;
    if (!p.wanted || m.phase != run_phase::watching) {
        slots_.reset();
        if (std::exchange(p.requested, false) && p.wanted) {
            p.sample = {};
            p.sample.of = *p.wanted;
            p.sample.text = "no run is watched, so the slot can't be copied";
            ++p.version;
        }
        return;
    }
    if (!slots_) slots_ = std::make_unique<slot_sampler>(mapped_, m.run.socket());
    if (std::exchange(p.requested, false)) slots_->request(*p.wanted);
    if (std::optional<slot_sample> found = slots_->take()) {
        p.sample = std::move(*found);
        ++p.version;
    }
}

void session::show_frame(model& m, picture_store& store, bool is_new) {
    picture_model& p = m.picture;
    const u64 began = now_ns();
    if (tap_->on_gpu())
        tap_->show(store.raw_texture());
    else
        store.upload(tap_->pixels());
    p.width = tap_->width();
    p.height = tap_->height();
    p.pixels = tap_->pixels();
    p.ring_sequence = tap_->ring_sequence();
    p.copy_ms = tap_->copy_ms();
    p.shown = tap_->shown();
    p.note = tap_->note();
    p.show_ms = static_cast<f64>(now_ns() - began) / 1e6;
    ++(is_new ? p.shown_frames : p.repainted);
}

// The texture keeps the last complete frame; only the host copy is dropped.
void session::drop_tap(model& m, const std::string& why) noexcept {
    m.picture.pixels = nullptr;
    m.picture.pointed.reset();
    m.picture.problem = why;
    tap_.reset();
}

void session::handle_command(model& m) {
    for (command& c : m.commands) control_.send(std::move(c));
    m.commands.clear();
    parameters_.send(m, control_, now_ns());
}

bool session::is_over() const { return options_.supervisor > 0 && !shm::is_alive(supervisor_); }

void session::end_run(const model& m) {
    if (options_.allowed == client_access::read_only)
        return;  // a signal to the supervisor is a command as well
    if (m.phase == run_phase::watching) {
        control_.send({run::end_request{}});
        control_.flush(2.0);
    } else if (const shm::unique_fd pidfd(options_.supervisor > 0 ? shm::open_pidfd(supervisor_) : -1);
               pidfd) {
        (void)shm::signal_pidfd(pidfd.get(), SIGTERM);
    }
}

}  // namespace carousel::viewer
