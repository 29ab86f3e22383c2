#include "supervisor/engine/run_phase.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "os/subprocess.hpp"
#include "ring/stream_end.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/progress.hpp"
#include "supervisor/engine/report.hpp"
#include "supervisor/engine/report_figures.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/processes/watch.hpp"
#include "supervisor/stores/checkpoint_store.hpp"

namespace carousel::supervisor {
namespace {

u64 sum_of_tails(const shm::control_block& c) noexcept {
    u64 sum = 0;
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) sum += ring::load(c.link[k].tail);
    return sum;
}

}  // namespace

run_phase::run_phase(const run_setup& setup, process_table& seats, block_custodian& block,
                     const checkpoint_store& checkpoints, stage_times& times, run_facts& facts,
                     run_extensions& extensions)
    : setup_(&setup),
      seats_(&seats),
      block_(&block),
      checkpoints_(&checkpoints),
      times_(&times),
      facts_(&facts),
      extensions_(&extensions) {}

std::string run_phase::name() const {
    switch (phase_) {
        case phase::draining:
            return "stopping";
        case phase::leaving:
            return "done";
        case phase::ending:
            return "ending";
        case phase::rebuilding:
            return "rebuilding";
        case phase::running:
            break;
    }
    if (!missing_stages(*setup_, seats_->seats).empty()) return "waiting";
    bool starting = false;
    for (const auto& s : seats_->seats) {
        if (s->machine.paused()) return "paused";
        starting = starting || s->machine.state() == seat_state::starting;
    }
    return starting ? "starting" : "running";
}

// Returns a text for display: "waiting: fragment is down, vertex is in backoff", "paused: fragment".
std::string run_phase::text() const {
    std::string text = name();
    const char* between = ": ";
    if (text == "paused")
        for (const auto& s : seats_->seats)
            if (s->machine.paused()) text += std::exchange(between, ", ") + s->label;
    if (text != "waiting") return text;
    for (const missing_stage& m : missing_stages(*setup_, seats_->seats))
        text += std::exchange(between, ", ") + m.name + " " + m.how;
    return text;
}

bool run_phase::is_ready() const noexcept {
    if (is(phase::leaving) || is(phase::rebuilding)) return is(phase::leaving);
    return std::none_of(seats_->seats.begin(), seats_->seats.end(), [](const auto& s) {
        return s->machine.state() == seat_state::starting || s->machine.state() == seat_state::backoff;
    });
}

void run_phase::enter(phase p) noexcept {
    phase_ = p;
    since_ns_ = now_ns();
}

void run_phase::interrupt(int signal) {
    ++facts_->interrupts;
    if (facts_->interrupts == 1) {
        facts_->ended_by = signal;
        end_on_request(signal_name(signal), signal,
                       fmt::format("{}: finishing frames in flight; a second signal ends the run at once",
                                   signal == SIGINT ? "interrupted" : signal_name(signal)));
    } else if (phase_ != phase::ending) {
        extensions_->each([](run_extension& e) { e.end_at_once(); });
        end_now("interrupted again");
    } else {
        supervisor::signal_all(*seats_, SIGKILL);
        killed_ = true;
    }
}

void run_phase::end_on_request(const std::string& by, int signal, const std::string& why) {
    if (facts_->end_requested_by.empty()) {
        facts_->end_requested_by = by;
        facts_->end_request_signal = signal;
    }
    request_end(why);
}

void run_phase::request_end(const std::string& why) {
    const bool may_wait = is(phase::running) || is(phase::rebuilding);
    if (extensions_->any(
            [&](run_extension& e) { return e.take_end_request(why, is(phase::leaving), may_wait); }))
        return;
    begin_drain(why);
}

void run_phase::begin_drain(const std::string& why) {
    // the end is requested again when the rebuilt block is in use
    facts_->end_requested = facts_->end_requested || phase_ == phase::rebuilding;
    if (phase_ != phase::running) return;
    seats_->log_line(why);
    for (const auto& s : seats_->seats) {
        const bool missing =
            s->machine.state() == seat_state::down && !setup_->stages[s->stage].spec.may_miss();
        if (s->machine.state() == seat_state::vacant && !setup_->stages[s->stage].spec.inputs.empty() &&
            !setup_->stages[s->stage].spec.skips())
            seats_->log_line(fmt::format(
                "port {} is vacant: frames that wait for it can't be delivered until a program opens it",
                s->label));
        if (missing)
            seats_->log_line(
                fmt::format("{} is down: frames that wait for it can't be delivered; run `carousel up {}`",
                            s->label, s->label));
    }
    facts_->end_requested = true;
    phase_ = phase::draining;
    since_ns_ = moved_ns_ = now_ns();
    supervisor::resume_paused(*seats_);
    if (facts_->stream_ended_by != shm::none)
        return;  // END is already known, and some stages may have exited because of it
    block_->begin_stop();
}

void run_phase::end_now(const std::string& why) {
    if (!why.empty()) seats_->log_line(why + ": ending");
    if (unwritten_.empty() && !block_->all_delivered()) unwritten_ = unwritten();
    if (!unwritten_.empty()) seats_->log_line("error: " + unwritten_);
    if (facts_->finished_ns == 0) facts_->finished_ns = now_ns();
    times_->finish(block_->block(), now_ns());
    phase_ = phase::ending;
    since_ns_ = now_ns();
    supervisor::no_more_starts(*seats_);
    supervisor::resume_paused(*seats_);
    supervisor::signal_all(*seats_, SIGTERM);
}

void run_phase::abandon_rebuild() {
    enter(phase::ending);
    supervisor::no_more_starts(*seats_);
}

void run_phase::begin_rebuild() {
    enter(phase::rebuilding);
    facts_->finished_ns = 0;
    ++facts_->rebuilds;
}

void run_phase::drain_again(bool end_is_fixed) {
    if (end_is_fixed) {
        enter(phase::draining);
        moved_ns_ = since_ns_;
    } else if (facts_->end_requested) {
        begin_drain("continuing to end the run");
    }
}

void run_phase::adopt_drain(u64 now) {
    facts_->end_requested = true;
    block_->adopt_stop();
    phase_ = phase::draining;
    since_ns_ = now;
}

void run_phase::end_after(f64 seconds) noexcept {
    if (seconds > 0) stop_at_ns_ = facts_->started_ns + static_cast<u64>(seconds * 1e9);
}

void run_phase::watch_time_limit(u64 now) {
    const bool to_end =
        is(phase::running) ||
        (is(phase::leaving) && extensions_->any([](run_extension& e) { return e.outlasts_delivery(); }));
    if (stop_at_ns_ == 0 || now < stop_at_ns_ || !to_end) return;
    stop_at_ns_ = 0;
    end_on_request("--seconds", 0, "the time limit has passed");
}

/// Time since `since` in which the run was not stopped, in ns.
u64 run_phase::running_since(u64 since, u64 now) const noexcept {
    const u64 from = seats_->groups.uncounted().shifted(since, now);
    return now > from ? now - from : 0;
}

/// True while a stage of a run that was stopped before its last frame writes its last state, for up to
/// stop_timeout_ms. Meanwhile a stage that dies is replaced, because the phase `leaving` has not begun.
bool run_phase::awaits_states(u64 now) {
    const bool stopped = ring::load(block_->block().stop_asked) != 0 && !facts_->end_requested_by.empty() &&
                         facts_->stream_ended_by == shm::none && block_->end() < setup_->end;
    if (!stopped || !checkpoints_->lacks_states(block_->end())) return false;
    // A process that has exited could not write the state.
    if (std::none_of(seats_->seats.begin(), seats_->seats.end(), [&](const auto& s) {
            return s->machine.state() != seat_state::done &&
                   checkpoints_->lacks_state(setup_->stages[s->stage].spec.name, block_->end());
        }))
        return false;
    if (delivered_ns_ == 0) delivered_ns_ = now;
    return running_since(delivered_ns_, now) < setup_->stop_timeout_ns;
}

void run_phase::watch(u64 now) {
    const shm::control_block& c = block_->block();
    if (is_open() && block_->all_delivered() && !awaits_states(now)) {
        phase_ = phase::leaving;
        since_ns_ = facts_->finished_ns = now;
        times_->finish(c, now);
        supervisor::no_more_starts(*seats_);
        supervisor::resume_paused(*seats_);
    }
    if (const u64 tails = sum_of_tails(c); tails != tails_) {
        tails_ = tails;
        moved_ns_ = now;
    }
    if (std::any_of(seats_->seats.begin(), seats_->seats.end(),
                    [](const auto& s) { return s->now && s->now->debuggers > 0; }))
        moved_ns_ = now;  // frames may wait for a process that its debugger has stopped
    watch_full_disk(now);
    // A drain may take any amount of time, as long as frames advance.
    if (is(phase::draining) &&
        running_since(std::max(moved_ns_, since_ns_), now) > 2 * setup_->stop_timeout_ns)
        end_now(fmt::format("no frame has moved for {} s", 2 * setup_->stop_timeout_ns / ns_per_s));
    flush_outputs(now);
}

// Once the end of a run was requested, the run waits for space on a full disk only for a limited time. The
// stages themselves stop retrying one second before that time is over.
void run_phase::watch_full_disk(u64 now) {
    if (phase_ != phase::draining || now < moved_ns_ + full_disk_patience_ns) return;
    for (const auto& s : seats_->seats) {
        const u64 since = full_disk_since_ns(block_->block(), *s);
        if (since == 0 || now < std::max(since, since_ns_) + full_disk_patience_ns + ns_per_s) continue;
        return end_now(fmt::format("{} still waits for free space on a full disk", s->label));
    }
}

// Returns "2 frames were not written ..." if a stage currently waits for a full disk or for another host;
// otherwise "".
std::string run_phase::unwritten() {
    const shm::control_block& c = block_->block();
    for (const auto& s : seats_->seats) {
        const bool link = link_since_ns(c, *s) != 0;
        if (!link && full_disk_since_ns(c, *s) == 0) continue;
        const u64 end = ring::load(c.end), first = delivered(*setup_, c);
        const std::string count = end == ring::end_unknown || end == ring::end_stopping || end < first
                                      ? "frames"
                                      : fmt::format("{} frames", end - first);
        unwritten_why_ = link ? "no link to the other host" : "disk full";
        if (link)
            return fmt::format(
                "{} waits for another host: {} from frame {} on were started, and their delivery is not "
                "confirmed. Restore the link and run again",
                s->label, count, first);
        return fmt::format(
            "the disk of {} is full: {} from frame {} on were started but are not written. Free some space "
            "and run again",
            s->label, count, first);
    }
    return "";
}

// Ends the stages that should have exited and have not: TERM, then KILL; the log names each of them.
void run_phase::flush_outputs(u64 now) {
    const u64 waited = running_since(since_ns_, now);
    if (phase_ == phase::leaving && waited > setup_->stop_timeout_ns && !seats_->all_gone())
        end_now(fmt::format("still running {} s after the last frame: {}", setup_->stop_timeout_ns / ns_per_s,
                            fmt::join(seats_->unended_processes(), ", ")));
    else if (phase_ == phase::ending && waited > setup_->stop_timeout_ns && !killed_ && !seats_->all_gone()) {
        seats_->log_line(fmt::format("killing processes that do not exit: {}",
                                     fmt::join(seats_->unended_processes(), ", ")));
        supervisor::signal_all(*seats_, SIGKILL);
        killed_ = true;
    }
}

run_outcome run_phase::outcome() const {
    run_outcome o;
    const bool whole = block_->all_delivered();
    o.complete = whole && !seats_->failure;
    o.planned_end = setup_->end;
    o.end_requested_by = facts_->end_requested_by;
    o.end = whole ? block_->end()
                  : std::max(std::min(delivered(*setup_, block_->block()), block_->end()), lost_until_);
    o.first = facts_->first;
    const u64 begun = facts_->begun_ns != 0 ? facts_->begun_ns : facts_->started_ns;
    u64 finished = facts_->finished_ns != 0 ? facts_->finished_ns : now_ns();
    if (whole) finished = last_delivery_ns(block_->block(), begun, finished);
    o.seconds = static_cast<f64>(finished - std::min(begun, finished)) / 1e9;
    if (whole && facts_->stream_ended_by != shm::none)
        o.ended_by = setup_->stages[facts_->stream_ended_by].spec.name;
    o.rebuilds = facts_->rebuilds;
    o.repairs = facts_->repairs;
    for (repair_record& m : o.repairs.last) m.at_ns -= std::min(m.at_ns, facts_->started_ns);
    o.taken_over = facts_->taken_over;
    if (const auto& f = seats_->failure) {
        o.exit_code = f->exit_code;
        o.ending = fmt::format("failed: {}: {}", f->label, f->what);
    } else if (!o.complete && !unwritten_.empty()) {
        o.exit_code = exit_code::output;
        o.ending = unwritten_why_;
    } else if (!o.complete) {
        o.exit_code = 128 + (facts_->ended_by != 0 ? facts_->ended_by : SIGTERM);
        o.ending = "interrupted";
    } else if (o.ended_early() && facts_->end_request_signal != 0 && facts_->end_request_signal != SIGINT) {
        // Every frame that was begun has been delivered. But the run is not complete: before `frames` frames
        // had been delivered, the run was ended by a signal other than a user's interrupt.
        o.complete = false;
        o.exit_code = 128 + facts_->end_request_signal;
        o.ending = "ended by " + facts_->end_requested_by;
    } else {
        o.ending = "complete";
    }
    return o;
}

void stream_end::watch() {
    const auto found = ring::claimed_end(block_->block());
    if (!found || found->ring_sequence >= block_->end()) return;
    lower(block_->published().source[std::min(found->source, shm::max_sources - 1)].stage,
          found->ring_sequence);
}

void stream_end::lower(u32 stage, u64 at) {
    facts_->stream_ended_by = stage;
    block_->set_end(at);
    save_();
    crash_here(crash_point::end_kept);
    (void)ring::lower_end(block_->block(), block_->end());
    seats_->log_line(
        fmt::format("the stream of {} ends before frame {}", setup_->stages[stage].spec.name, block_->end()));
}

void stream_end::end(const std::string& stage, u64 at, const std::string& why) {
    if (at >= block_->end()) return;
    for (u32 k = 0; k < setup_->stages.size(); ++k) {
        const stage_setup& s = setup_->stages[k];
        if (s.spec.name != stage || !s.receives()) continue;
        seats_->log_line(why);
        return lower(k, at);
    }
}

void stream_end::adopt(u32 ended_by) {
    if (ended_by >= setup_->stages.size() || !setup_->stages[ended_by].ends) return;
    if (block_->end() == ring::end_unknown || block_->end() == ring::end_stopping) return;
    facts_->stream_ended_by = ended_by;
    (void)ring::lower_end(block_->block(), block_->end());
}

}  // namespace carousel::supervisor
