#include "supervisor/processes/retire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "device/device_failure.hpp"
#include "ring/blame.hpp"
#include "ring/recovery.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/processes/start.hpp"

namespace carousel::supervisor {
namespace {

constexpr std::size_t max_listed_abandoned = 1000;

/// True if, without seat `s`, the pipeline would have no sink left that reads every frame. A latest reader
/// takes the frames that it can get, and does not keep a run alive.
bool is_last_sink(const process_table& t, const seat& s) noexcept {
    return std::none_of(t.seats.begin(), t.seats.end(), [&](const auto& o) {
        const stage_setup& st = t.setup->stages[o->stage];
        return o.get() != &s && counts_frames(st) && o->machine.state() != seat_state::failed;
    });
}

void fail_seat(process_table& t, seat& s, const process* p) {
    const stage_setup& st = t.setup->stages[s.stage];
    const bool last = st.spec.optional && is_last_sink(t, s);
    if (last)
        t.log_line(
            fmt::format("{} is optional, but no other sink is left, so the run can't continue", s.label));
    if (st.spec.optional && !last) {
        const bool others = std::any_of(t.seats.begin(), t.seats.end(), [&](const auto& o) {
            return o->stage == s.stage && o.get() != &s && o->machine.state() != seat_state::failed;
        });
        t.log_line(fmt::format("{} has failed ({}); it is optional: the run continues{}", s.label,
                               s.last_exit, others ? "" : " without it"));
        if (others) return;
        skip_frames(t, s.stage);
        return;
    }
    if (t.failure || t.ending)
        return;  // only the first failure counts; a run that is being ended does not
                 // fail
    root_cause f;
    f.label = s.label;
    f.what = s.last_exit;
    const bool failed_at_start = p != nullptr && p->how.known && p->how.signal == 0 && !p->how.was_ready;
    if (failed_at_start && (p->how.exit_code == exit_code::usage || p->how.exit_code == exit_code::no_device))
        f.exit_code = p->how.exit_code;
    f.last_lines.assign(s.log->last().begin(), s.log->last().end());
    t.failure = std::move(f);
}

run::exit_reason exit_reason_of(const process_table& t, const seat& s, const process& p) noexcept {
    using enum run::exit_reason;
    if (s.machine.state() == seat_state::stopping || p.how.restart_requested)
        return t.paused ? rebuild : requested;
    if (p.port) return port;
    if (p.mps.with_domain || p.mps.moved) return mps_domain;
    if (p.how.injected) return injected;
    if (p.how.deadline) return deadline;
    if (p.how.out_of_memory) return out_of_memory;
    if (!p.how.known || p.how.signal != 0) return signal;
    return p.how.exit_code == exit_code::gpu_fault || p.how.exit_code == exit_code::gpu_lost ? gpu_fault
                                                                                             : exit;
}

}  // namespace

using ring::load;

void count_death(process_table& t, u32 seat_index) {
    const shm::seat_block& sb = t.made->seat[seat_index];
    bool at[5] = {};
    for (u32 j = sb.first_job; j < std::min(sb.first_job + sb.jobs, shm::max_jobs); ++j) {
        const auto state = static_cast<u8>(ring::job_word::of(load(t.c->job[j])).state);
        if (state <= 4) at[state] = true;
    }
    bool busy = false;
    for (u32 k = 1; k < 5; ++k) {
        t.account.kills_at[k] += at[k] ? 1 : 0;
        busy = busy || at[k];
    }
    t.account.kills_at[0] += busy ? 0 : 1;
    ++t.account.deaths;
}

void apply_restart_policy(process_table& t, seat& s, process& p) {
    p.judged = true;
    // Its exit code may have become known after its death was recorded.
    p.how.through = p.how.through || (p.how.known && t.has_finished(s.stage, p.how));
    if (!p.how.through) ++s.counters.exits[enum_name(exit_reason_of(t, s, p))];
    s.last_exit_pid = p.pid;
    s.last_exit = s.machine.state() == seat_state::stopping ? "down"
                  : p.port                                  ? describe_port_end(p)
                  : p.mps.with_domain                       ? with_domain_text
                  : p.mps.moved                             ? moved_text
                  : p.how.restart_requested                 ? "restarted"
                  : p.how.known || p.how.deadline           ? describe(p.how)
                                                            : death_by_signal_text;
    const std::optional<run::fault_record> fault = fault_of(t, p);
    // the place in a ring is preferred to the address
    const std::string place = !p.wild_write.empty() ? p.wild_write : fault ? run::fault_text(*fault) : "";
    const std::string how = place.empty() ? s.last_exit : fmt::format("{}, {}", s.last_exit, place);
    if (!p.how.through) {
        recovery judged{s.label, p.pid, p.incarnation.epoch, s.last_exit, 0, 0, 0, 0, false};
        judged.wild_write = p.wild_write;
        t.recoveries.report(judged);
        t.note("died", p.seen_dead_ns, s, p,
               fmt::format("(pid {}) died: {}; {} frames in flight", p.pid, how, frames_in_flight(p)));
    }
    if (p.by_hand) {  // a process that was started by hand is not restarted, because the user starts the next
                      // process
        s.machine.on(seat_event::take_down, now_ns());
        t.c->seat[s.index].paused.store(0, std::memory_order_release);
        s.machine.on(seat_event::died_outside, now_ns());
        return;
    }
    update_trial(t, s, p);
    if (const gpu_error_kind kind = gpu_error_of(p.how); kind != gpu_error_kind::none && !t.ending)
        t.gpu_errors.push_back({s.stage, kind, p.seen_dead_ns, p.mps.generation});
    // a port has no restart delay, so the next program may attach at once
    const seat_event e = p.port && !p.how.through ? seat_event::died_outside
                                                  : classify(p.how, t.setup->stages[s.stage].spec.restart);
    if (e != seat_event::finished && !t.ending && s.machine.state() != seat_state::stopping)
        t.log_line(fmt::format("{} (pid {}){}: {}; {} frames in flight", s.label, p.pid,
                               p.port ? " has left its port" : " died", how, frames_in_flight(p)));
    if (fault) t.faults_of_processes.begin(s, *fault);
    const seat_action next = s.machine.on(e, now_ns());
    // Should the seat be started again, its program may have been replaced before.
    if (s.machine.state() == seat_state::done || s.machine.state() == seat_state::failed) end_standby(s);
    if (next == seat_action::start && !t.ending && lacked_resources(p.how))
        return postpone_start(t, s, s.log->last().empty() ? s.last_exit : s.log->last().back());
    apply_seat_action(t, s, next, &p);
}

void apply_seat_action(process_table& t, seat& s, seat_action a, const process* p) {
    if (a != seat_action::resume)
        t.c->seat[s.index].paused.store(s.machine.paused() ? 1 : 0, std::memory_order_release);
    switch (a) {
        case seat_action::start:
            s.start_wanted = true;
            s.due_ns = 0;
            in_order(t, [&] { t.todo.push_back({work::kind::start, s.index, {}}); });
            break;
        case seat_action::delay:
            s.start_wanted = true;
            s.due_ns = now_ns() + s.machine.delay_ns();
            t.log_line(fmt::format("{} died before it delivered a frame ({}): restarting in {:.1f} s",
                                   s.label, s.last_exit, static_cast<f64>(s.machine.delay_ns()) / 1e9));
            break;
        case seat_action::fail:
            fail_seat(t, s, p);
            break;
        case seat_action::suspend:
            if (s.now) shm::signal_pidfd(s.now->pidfd.get(), SIGSTOP);
            if (s.now) t.note("paused", now_ns(), s, *s.now, "is paused, and the pipeline waits for it");
            break;
        case seat_action::resume:
            if (s.now) shm::signal_pidfd(s.now->pidfd.get(), SIGCONT);
            if (s.now) t.note("continues", now_ns(), s, *s.now, "continues");
            s.clock_base_ns = now_ns();
            t.c->seat[s.index].paused.store(0, std::memory_order_release);
            break;
        case seat_action::end:
            if (s.now) retire(t, s);
            break;
        case seat_action::none:
        case seat_action::refuse:
            break;
    }
}

// A stage that may leave its GPU moves to the CPU after GPU errors, so these are no attempts on its frames.
bool is_blamed(const process_table& t, const seat& s, const process& p) noexcept {
    const stage_setup& st = t.setup->stages[s.stage];
    const bool may_move = st.may_leave_gpu && !st.left_gpu;
    return self_inflicted(p.how) && !(may_move && gpu_error_of(p.how) != gpu_error_kind::none);
}

void blame_late(process_table& t, seat& s, process& p) noexcept {
    if (!is_doomed(p) || p.why == ring::blame::own || !is_blamed(t, s, p) || p.how.through ||
        p.sequences.empty())
        return;
    p.why = ring::blame::own;
    const bool single = frames_in_flight(p) == 1;
    for (const u64 ring_sequence : p.sequences) ring::blame_waiting(*t.c, s.stage, ring_sequence, single);
    note_abandoned(t, s, p);
}

void list_abandoned(process_table& t, tombstone_frame frame) {
    if (t.account.abandoned.size() >= max_listed_abandoned) {
        t.account.abandoned.erase(t.account.abandoned.begin());
        ++t.account.abandoned_before;
    }
    t.account.abandoned.push_back(std::move(frame));
}

void note_abandoned(process_table& t, seat& s, const process& p) {
    if (p.sequences.empty() || frames_in_flight(p) != 1) return;
    const u32 cap = t.made->stage[s.stage].max_attempts;
    u32 failures = 0;
    ring::for_each_lease_of(
        *t.c, s.stage, p.sequences.front(), [&](const shm::word&, u64 raw, u32 generation) {
            failures = std::max(failures, ring::lease_word::of(raw).seen_at(generation).failures());
        });
    if (cap == 0 || failures < cap) return;
    const std::string& stage = t.setup->stages[s.stage].spec.name;
    // The frame was abandoned before. The stage requests tombstones, and a process has ended while it worked
    // on the tombstone of this frame. The frame is counted as abandoned only once.
    if (std::any_of(t.account.abandoned.begin(), t.account.abandoned.end(), [&](const auto& g) {
            return g.ring_sequence == p.sequences.front() && g.stage == stage;
        })) {
        t.log_line(
            fmt::format("{}: another process has ended in finish() for the tombstone of frame {} ({}); make "
                        "the stage accept tombstones, or remove wants_tombstones",
                        s.label, p.sequences.front(), describe(p.how)));
        return;
    }
    ++s.counters.abandoned;
    const std::string attempts = fmt::format("{} attempt{}", failures, failures == 1 ? "" : "s");
    t.note("abandoned", now_ns(), s, p,
           fmt::format("gives up frame {} after {}", p.sequences.front(), attempts));
    list_abandoned(t, {p.sequences.front(), t.setup->stages[s.stage].spec.name, describe(p.how)});
    t.log_line(
        fmt::format("{}: frame {} is given up after {} ({}): it continues as a tombstone, without a payload",
                    s.label, p.sequences.front(), attempts, describe(p.how)));
}

}  // namespace carousel::supervisor
