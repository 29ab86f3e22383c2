#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/plan/guard_plan.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/exit_notes.hpp"
#include "shm/injected_fault.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/processes/start.hpp"
#include "supervisor/processes/start_over.hpp"
#include "supervisor/processes/watch.hpp"

namespace carousel::supervisor {
namespace {

[[noreturn]] void refuse_command(const seat& s, const char* command, const char* instead) {
    throw config_error(fmt::format("{}: `{}` is not possible while the stage is {}: {}", s.label, command,
                                   name_of(s.machine.state()), instead));
}

/// Returns the text that a command adds to its reply if it ends the process of a paused stage.
std::string pause_text(const seat& s) {
    return s.machine.paused() ? fmt::format("; its successor is paused until `carousel cont {}`", s.label)
                              : "";
}

// The require_...() functions throw if an injected fault would harm other stages. They can read the entry's
// `guard`, because the stage has written `guard` before it reported that it is ready.
void require_guarded_input(const process_table& t, const seat& s, const process& p,
                           const shm::injected_fault_row& row) {
    if (t.made->stage[s.stage].inputs == 0)
        throw config_error(
            fmt::format("{} has no input to write to: use {} on a downstream stage", s.label, row.name));
    const bool guarded = (t.c->entry[p.incarnation.entry].guard & shm::memory_guard::inputs_writable) == 0;
    if (!guarded && !t.setup->scribbles_anywhere)
        throw config_error(
            fmt::format("{}: its inputs are unguarded (for the cause see `carousel run FILE --dry-run`): {} "
                        "would harm the upstream stage and its other readers",
                        s.label, row.name));
}

void require_guarded_output(const process_table& t, const seat& s, const process& p,
                            const shm::injected_fault_row& row) {
    if (t.made->stage[s.stage].outputs == 0)
        throw config_error(
            fmt::format("{} has no output to write beyond: use {} on an upstream stage", s.label, row.name));
    const bool guarded = (t.c->entry[p.incarnation.entry].guard & shm::memory_guard::output_gaps) != 0 ||
                         has_canaries(*t.made, s.stage, t.setup->stages[s.stage]);
    if (!guarded && !t.setup->overruns_anywhere)
        throw config_error(
            fmt::format("{}: its output is unguarded (for the cause see `carousel run FILE --dry-run`): {} "
                        "would harm another frame",
                        s.label, row.name));
}

void require_guarded_block(const process_table& t, const seat& s, const process& p,
                           const shm::injected_fault_row& row) {
    if ((t.c->entry[p.incarnation.entry].guard & shm::memory_guard::block_pages) == 0 &&
        !t.setup->scribbles_anywhere)
        throw config_error(fmt::format(
            "{}: it can write to the whole control block: {} would harm other stages", s.label, row.name));
}

// Writes a note, which makes observers show the end of the process as requested, and not as a crash. Must be
// called before the entry is doomed, because observers read the note as soon as the entry is doomed.
void note_request(const process_table& t, const process& p, ring::requested_end why) noexcept {
    t.c->entry[p.incarnation.entry].exit_note.store(ring::note_requested_end(why), std::memory_order_relaxed);
}

}  // namespace

std::string stop_seat(process_table& t, seat& s) {
    require_no_port(t, s, "stop");
    const bool before = s.machine.paused();
    const seat_action a = s.now ? s.machine.on(seat_event::pause, now_ns()) : seat_action::refuse;
    if (a == seat_action::refuse) refuse_command(s, "stop", "it has no process to pause");
    apply_seat_action(t, s, a, nullptr);
    return fmt::format("{} (pid {}) is paused {}until `carousel cont {}`", s.label, s.now->pid,
                       before ? "already, " : "", s.label);
}

bool is_paused(const seat& s) noexcept {
    const bool may_query = s.now && !s.now->port && !s.now->elsewhere;
    return s.machine.paused() || (may_query && shm::is_stopped(s.now->pid));
}

std::string continue_seat(process_table& t, seat& s) {
    require_no_port(t, s, "cont");
    const seat_action a = is_paused(s) ? s.machine.on(seat_event::resume, now_ns()) : seat_action::refuse;
    if (a == seat_action::refuse) refuse_command(s, "cont", "it is not paused");
    // Other stages may have waited for this stage during the whole pause; no deadline counts that time.
    restart_clocks(t, now_ns());
    apply_seat_action(t, s, a, nullptr);
    return a == seat_action::resume && s.now
               ? fmt::format("{} (pid {}) continues", s.label, s.now->pid)
               : fmt::format("{} is no longer paused: its next process runs when it is ready", s.label);
}

// A SIGKILL that comes unannounced may end every client of an MPS domain. Here the client's words are revoked
// first, and terminate_client ends its device work before the signal.
std::string kill_client(process_table& t, seat& s) {
    process& p = *s.now;
    const i32 pid = p.pid;
    if (p.signalled_ns == 0) p.signalled_ns = now_ns();
    p.user_signal = p.how.signal = SIGKILL;
    p.how.known = p.how.outside = p.by_supervisor = true;
    if (end_client_with_domain(t, s, "is killed"))
        return fmt::format("ended {} (pid {}); the standbys of all stages of its MPS domain take over",
                           s.label, pid) +
               pause_text(s);
    return fmt::format("ended {} (pid {}); its MPS domain continues (`kill -9 {}` from outside may end it)",
                       s.label, pid, pid) +
           pause_text(s);
}

std::string kill_seat(process_table& t, seat& s, int signal) {
    require_no_port(t, s, "kill");
    if (!s.now) refuse_command(s, "kill", "it has no process");
    process& p = *s.now;
    if (signal == SIGKILL && ends_alone(t, p)) return kill_client(t, s);
    const bool stops = signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU ||
                       signal == SIGCONT || signal == 0;
    if (!stops && p.signalled_ns == 0) p.signalled_ns = now_ns();
    if (!stops) p.user_signal = signal;
    const int failed = shm::signal_pidfd(p.pidfd.get(), signal);
    if (failed != 0) {
        p.signalled_ns = 0;
        throw shm_error(fmt::format("signalling {} (pid {}): {}", s.label, p.pid, errno_text(failed)));
    }
    const char* name = signal > 0 ? sigabbrev_np(signal) : nullptr;
    return fmt::format("sent signal {} ({}) to {} (pid {}){}", signal, name != nullptr ? name : "?", s.label,
                       p.pid, stops ? "" : pause_text(s));
}

// The successor is the program that is now on disk; the predecessor's frames are requeued, and none is lost.
std::string restart_seat(process_table& t, seat& s) {
    require_no_port(t, s, "restart");
    const seat_state before = s.machine.state();
    end_standby(s);  // the standby is replaced as well, because it also runs the old program
    if (!s.now &&
        (before == seat_state::backoff || before == seat_state::down || before == seat_state::failed))
        return bring_seat_up(t, s);
    if (!s.now || before == seat_state::done || before == seat_state::stopping)
        refuse_command(s, "restart", "it has no process");
    const i32 old = s.now->pid;
    s.now->how.restart_requested = s.now->how.outside = s.now->by_supervisor = true;
    note_request(t, *s.now, ring::requested_end::restart);
    retire(t, s);
    if (!s.now) return fmt::format("{} (pid {}) is being replaced{}", s.label, old, pause_text(s));
    return fmt::format("{} (pid {}) is being replaced by pid {}{}", s.label, old, s.now->pid, pause_text(s));
}

// Makes a stage fail on demand. The death is blamed neither on the stage nor on the frame that it was working
// on.
std::string inject_fault(process_table& t, seat& s, shm::injected_fault kind) {
    require_no_port(t, s, "inject");
    if (!s.now || s.machine.state() != seat_state::running)
        refuse_command(s, "inject", "a fault can only be injected into a running stage");
    process& p = *s.now;
    const shm::injected_fault_row* row = shm::row_of(kind);
    CAROUSEL_ASSERT(row != nullptr);
    const bool on_gpu = is_gpu(t.setup->stages[s.stage].device_of(s.instance));
    if (row->needs_gpu && !on_gpu)
        throw config_error(fmt::format(
            "{} runs on the CPU and can't have a GPU fault: use `carousel kill {} --signal SEGV` instead",
            s.label, s.label));
    if (row->needs_input) require_guarded_input(t, s, p, *row);
    if (row->needs_output) require_guarded_output(t, s, p, *row);
    if (kind == shm::injected_fault::scribble_control) require_guarded_block(t, s, p, *row);
    const u64 timeout_ns = t.setup->stages[s.stage].spec.frame_timeout_ns();
    if (row->needs_deadline &&
        (is_under_tool(p) || timeout_ns == 0 || (t.c->stage[s.stage].flags & shm::stage_flag::latest) != 0))
        throw config_error(fmt::format("{} {}, so the hang would never be detected", s.label,
                                       is_under_tool(p) ? "runs under a tool and has no deadline"
                                       : timeout_ns == 0
                                           ? "has no deadline (frame_timeout_ms = 0)"
                                           : "reads its input as `latest` and delays no other stage"));
    p.how.injected = true;
    t.c->seat[s.index].fault.store(shm::fault_word(kind, p.incarnation.epoch), std::memory_order_release);
    return fmt::format(
        "{} (pid {}): fault {} is injected at its next frame{}", s.label, p.pid, row->name,
        row->needs_deadline ? fmt::format("; it is replaced {} ms later", timeout_ns / ns_per_ms) : "");
}

std::string take_seat_down(process_table& t, seat& s) {
    const seat_state before = s.machine.state();
    s.start_wanted = false;
    end_standby(s);
    const i32 pid = s.now ? s.now->pid : 0;
    const seat_action a = s.machine.on(seat_event::take_down, now_ns());
    if (a == seat_action::refuse) refuse_command(s, "down", "it has already ended");
    if (s.now) {
        s.now->how.outside = s.now->by_supervisor = true;
        note_request(t, *s.now, ring::requested_end::down);
        apply_seat_action(t, s, a, nullptr);
    } else {
        apply_seat_action(t, s, seat_action::none, nullptr);  // publishes that the seat is no longer paused
        // a process was about to be started; this start is cancelled
        if (s.machine.state() == seat_state::stopping) s.machine.on(seat_event::died_outside, now_ns());
    }
    if (before == seat_state::down) return fmt::format("{} is already down", s.label);
    return pid != 0 ? fmt::format("{} (pid {}) is down until `carousel up {}`; its frames stay queued",
                                  s.label, pid, s.label)
                    : fmt::format("{} is down until `carousel up {}`", s.label, s.label);
}

std::string bring_seat_up(process_table& t, seat& s) {
    if (t.ending) throw config_error(fmt::format("{}: the run is ending", s.label));
    const seat_action a = s.machine.on(seat_event::bring_up, now_ns());
    if (a == seat_action::refuse)
        refuse_command(s, "up",
                       s.machine.state() == seat_state::stopped ? "`carousel cont` continues it"
                                                                : "wait until it is down");
    const bool excluded = t.setup->stages[s.stage].spec.optional && t.ledgers.claim_suspended(s.stage);
    if (excluded && t.memory_there) await_again(t, s.stage);
    apply_seat_action(t, s, a, nullptr);
    return s.now ? fmt::format("{} is {} (pid {})", s.label, name_of(s.machine.state()), s.now->pid)
                 : fmt::format("{} {}", s.label, is_port(t, s) ? "is vacant" : "starts");
}

void pause_all(process_table& t, bool words_intact, bool keep_standbys) {
    t.paused = true;
    t.words_intact = words_intact;
    t.holders_gone_ns = 0;
    t.paused_ns = now_ns();
    std::vector<bool> paused;  // the pause is saved, because it lasts until the user ends it
    for (const auto& s : t.seats) paused.push_back(s->machine.paused());
    resume_paused(t);
    for (auto& s : t.seats) {
        s->machine.restore_paused(paused[s->index]);
        t.c->seat[s->index].paused.store(paused[s->index] ? 1 : 0, std::memory_order_release);
        if (!keep_standbys || !request_start_over(t, *s)) end_standby(*s);
        if (!s->now) continue;
        s->now->how.restart_requested = s->now->how.outside = s->now->by_supervisor = true;
        retire(t, *s);
        ring::wake(*t.c, s->index);  // a port's program that waits for a frame leaves at once
    }
}

void resume_all(process_table& t, bool revive) {
    t.paused = t.ending = false;
    if (revive) t.failure.reset();
    for (auto& s : t.seats) {
        const seat_state was = s->machine.state();
        t.c->seat[s->index].paused.store(s->machine.paused() ? 1 : 0, std::memory_order_release);
        // An optional sink is excluded if its claim is suspended. If its failure ended the run because no
        // other sink was left, the sink still has its claim, and is started again, because otherwise the run
        // would continue without any sink.
        const bool excluded = t.setup->stages[s->stage].spec.optional && t.ledgers.claim_suspended(s->stage);
        // A source may be done long before the sinks. The source starts again, because the rebuilt rings
        // contain none of its frames.
        if (was == seat_state::done ||
            (revive && ((was == seat_state::failed && !excluded) || was == seat_state::backoff))) {
            s->machine.resume(seat_state::starting, now_ns(), 0);
            s->start_wanted = true;
        }
    }
    settle_absent_readers(t);  // closes the groups of absent readers again, because the rings of the new
                               // block wait for every reader
    for (auto& s : t.seats)
        if (s->start_wanted) start_seat(t, *s);
    end_start_over(t);
}

void resume_paused(process_table& t) {
    for (auto& s : t.seats)
        if (s->machine.paused())
            apply_seat_action(t, *s, s->machine.on(seat_event::resume, now_ns()), nullptr);
}

void signal_all(process_table& t, int signal) {
    for (auto& s : t.seats) {
        const auto send = [&](const process& p) {
            if (p.ended || !p.pidfd || p.port) return;
            shm::signal_pidfd(p.pidfd.get(), signal);
            // SIGCONT is sent, too, because a stopped process handles SIGTERM only when it continues
            if (signal != SIGCONT) shm::signal_pidfd(p.pidfd.get(), SIGCONT);
            if (p.tool_pidfd && signal == SIGKILL) shm::signal_pidfd(p.tool_pidfd.get(), signal);
        };
        if (s->now) send(*s->now);
        if (s->standby) send(*s->standby);
        for (const auto& p : s->gone) send(*p);
    }
}

}  // namespace carousel::supervisor
