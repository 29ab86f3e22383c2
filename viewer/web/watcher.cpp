#include "viewer/web/watcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/enum_names.hpp"
#include "core/errors.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::viewer::web {
namespace {

constexpr u64 poll_every_ns = 250 * ns_per_ms, check_every_ns = 250 * ns_per_ms,
              sample_every_ns = 8 * ns_per_ms, files_every_ns = ns_per_s;
constexpr auto idle_wait = std::chrono::milliseconds(100);

std::string waiting_notice(const std::string& name, const std::vector<run::record>& others) {
    if (name.empty() && others.empty())
        return "no pipeline is running; waiting for one (start it with: carousel run FILE)";
    std::string names;
    for (const run::record& r : others) names += (names.empty() ? "" : ", ") + r.name;
    if (name.empty())
        return fmt::format("several pipelines are running ({}); choose one: carousel view -p NAME", names);
    return fmt::format("no pipeline \"{}\" is running{}; waiting for it", name,
                       names.empty() ? "" : " (these are: " + names + ")");
}

}  // namespace

BOOST_DESCRIBE_ENUM(run_phase, waiting, running, ended)
const char* name_of(run_phase p) noexcept { return enum_name(p); }

const seat_report* view::report_of(u32 seat) const { return viewer::report_of(report, snap, seat); }

watcher::watcher(std::string name, bool follows)
    : name_(std::move(name)), follows_(follows), thread_([this] { loop(); }) {}

watcher::~watcher() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

std::shared_ptr<const run::mapped_block> watcher::attached() {
    const std::lock_guard lock(mutex_);
    return mapped_;
}

void watcher::log_event(telemetry::event_kind kind, const std::string& text) {
    const std::lock_guard lock(mutex_);
    view_.events.add({now_ns(), kind, shm::none, text});
}

void watcher::loop() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
        tick(now_ns());
        read_files(lock);
        wake_.wait_for(lock, idle_wait, [this] { return stop_; });
    }
    sampler_.reset();
}

void watcher::tick(u64 now) {
    try {
        if (view_.phase == run_phase::running && now >= next_check_ns_) {
            next_check_ns_ = now + check_every_ns;
            check_alive();
        }
        if (view_.phase != run_phase::running && now >= next_poll_ns_) {
            next_poll_ns_ = now + poll_every_ns;
            find_run();
        }
        if (view_.phase == run_phase::running) read();
    } catch (const std::exception& e) {
        view_.notice = e.what();
    }
}

void watcher::find_run() {
    const std::vector<run::record> runs = run::watchable_runs();
    view_.choices = runs;
    if (view_.phase == run_phase::ended) {
        const auto next = std::find_if(runs.begin(), runs.end(),
                                       [this](const run::record& r) { return r.folder == view_.run.folder; });
        if (next == runs.end()) return;
        // `next` is either the same run, if a supervisor has taken it over, or the next run of that name.
        const bool same = next->run_id == view_.run.run_id;
        const bool adopted = same && observer_ && observer_->poll().liveness.state == run::liveness::led;
        if (adopted || (!same && follows_)) attach(*next);
        return;
    }
    const run::record* found = nullptr;
    for (const run::record& r : runs)
        if (name_.empty() ? runs.size() == 1 : r.folder == run::runs_folder() + "/" + name_) found = &r;
    if (found != nullptr)
        attach(*found);
    else
        view_.notice = waiting_notice(name_, runs);
}

bool watcher::choose(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (view_.phase == run_phase::running) return false;
    const bool known = std::any_of(view_.choices.begin(), view_.choices.end(), [&](const run::record& r) {
        return r.folder == run::runs_folder() + "/" + name;
    });
    if (!known) return false;
    name_ = name;
    view_.phase = run_phase::waiting;
    next_poll_ns_ = 0;
    return true;
}

void watcher::attach(const run::record& r) {
    const bool same = view_.run.folder == r.folder && view_.run.run_id == r.run_id;
    try {
        run::observer found(r, run::observer::access::take_leases);
        observer_.emplace(std::move(found));
    } catch (const error& e) {  // this happens, for example, while the run is starting or ending
        view_.notice = e.what();
        return;
    }
    if (!same) {
        view_.past.clear();
        view_.hosts.clear();
        view_.files = {};
    }
    view_.run = r;
    view_.phase = run_phase::running;
    view_.led = true;  // the run is assumed to have a supervisor until the first check, which follows soon
    view_.notice.clear();
    control_.aim(r.socket(), r.run_id);
    begin_with_block();
}

void watcher::begin_with_block() {
    sampler_.reset();  // destroyed before mapped_ is replaced, because the sampler reads the block that
                       // mapped_ keeps mapped
    mapped_ = observer_->mapped();
    sampler_ = std::make_unique<sampler>(mapped_->observed->block(), sample_every_ns);
    tracker_ = telemetry::rate_tracker();
    view_.report.clear();
    // A recreated block may have other parameters, so the earlier reply is no longer valid.
    control_.ask_parameters_again();
    parameters_known_ = false;
    view_.schema = {};
}

void watcher::end(const std::string& how) {
    const std::string text = fmt::format("{} has ended: {}", view_.run.name, how);
    view_.events.add({now_ns(), telemetry::event_kind::warning, shm::none, text});
    view_.notice =
        text + "; showing its last state until " +
        (follows_ ? "the next run of this name, or another one is chosen" : "another run is chosen");
    view_.phase = run_phase::ended;
    view_.led = false;
    view_.whole = {};
    sampler_.reset();
    observer_->stop_leasing();
    mapped_.reset();
    control_.aim("", "");
    next_poll_ns_ = 0;
}

void watcher::check_alive() {
    const run::observation present = observer_->poll();
    view_.run = observer_->run();
    view_.led = present.liveness.state == run::liveness::led;
    if (present.recreated) begin_with_block();
    for (const run::run_update& n : present.updates) view_.events.add({now_ns(), n.kind, shm::none, n.text});
    if (present.liveness.state != run::liveness::over) return;
    read();  // the final state
    end(present.liveness.ending);
}

void watcher::read() {
    telemetry::read_snapshot(observer_->block(), view_.snap);
    sampler_->collect(view_.events, bars_);
    view_.rates = tracker_.feed(view_.snap);
    view_.past.feed(view_.snap, view_.rates);
    for (const telemetry::crash& c : view_.events.take_deaths()) view_.past.mark(c.died_ns, c.stage);
    view_.report = control_.report();
    view_.whole = control_.run_state();
    view_.last_known = control_.last_known();
    view_.other_ring_names = control_.other_ring_names();
    take_hosts();
    learn_parameters();
    explain_crash();
    view_.notice = observer_->notice(now_ns(), view_.snap.supervisor_heartbeat_ns);
}

// Reading the ledgers takes milliseconds, so the lock is released meanwhile.
void watcher::read_files(std::unique_lock<std::mutex>& lock) {
    if (view_.phase != run_phase::running || now_ns() < next_files_ns_) return;
    next_files_ns_ = now_ns() + files_every_ns;
    const std::string folder = view_.run.folder, run_id = view_.run.run_id;
    const std::vector<sink_tail> sinks = sink_tails(view_.snap);
    const u64 block = view_.snap.created_ns;
    run_files found = view_.files;
    lock.unlock();
    found.read(folder, sinks, block);
    lock.lock();
    if (view_.run.run_id == run_id) view_.files = std::move(found);
}

// If the supervisor does not reply, the last known hosts are kept.
void watcher::take_hosts() {
    std::vector<host_report> reported = control_.hosts();
    if (reported.empty()) return;
    for (telemetry::run_event& e : changes(view_.hosts, reported, now_ns())) view_.events.add(std::move(e));
    view_.hosts = std::move(reported);
}

// The thread of control_ requests the parameters once per second until the request is answered; an
// unreadable answer is reported once.
void watcher::learn_parameters() {
    for (const reply& r : control_.take_replies())
        view_.events.add({now_ns(), telemetry::event_kind::warning, shm::none, r.message});
    if (parameters_known_) return;
    if (const std::optional<run::parameter_state> s = control_.parameters()) {
        view_.schema = s->schema;
        parameters_known_ = true;
    }
}

void watcher::explain_crash() {
    const auto& c = view_.events.last_crash();
    if (!c || !c->how.empty()) return;
    if (const seat_report* r = view_.report_of(c->seat);
        r != nullptr && r->restarts.value_or(0) + 1 >= c->turn)
        view_.events.explain(c->seat, r->last_exit.value_or(""));
}

}  // namespace carousel::viewer::web
