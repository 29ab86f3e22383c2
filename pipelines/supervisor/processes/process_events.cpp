// Every event of a process enters here, whatever reports it:
//   its pidfd            it has ended                      process_exited
//   its socket           closed                            connection_closed
//   a message on it      ready, returned, left (a port)    stage_is_ready, stage_returned, port_left
//   a port's lock        free                              poll_port
//   a deadline           missed                            deadline_missed
//   its note in the control block (exit code, fault)       read_exit_note
//   its log pipe         output, end                       watch_log
//
// The path of a death, in three files:
//   process_events.cpp   detected: the event, and what is known of the cause
//   retire.cpp           its words are taken, its frames requeued, the process fenced and its buffers freed
//   restart.cpp          the death is judged and charged, and a successor is started (start.cpp) or not
#include "supervisor/processes/process_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "os/spawn.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "supervisor/processes/restart.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/standby.hpp"

namespace carousel::supervisor {
namespace {

void note_out_of_memory(process_table& t, const seat& s, process& p) {
    if (p.how.signal != SIGKILL || p.kill_sent || p.how.outside || !t.groups.consume_oom_kill(now_ns()))
        return;
    p.how.out_of_memory = true;
    const std::string limit = t.groups.memory_text();
    t.log_line(
        fmt::format("{} (pid {}): the kernel's out-of-memory killer has ended it: {}; give the run more "
                    "memory, or reduce its need (--size, window, instances)",
                    s.label, p.pid, limit.empty() ? "the machine has no memory left" : limit));
}

std::string describe_end(const exit_status& e) {
    return e.signal != 0 ? fmt::format("signal {}", e.signal) : fmt::format("exit code {}", e.exit_code);
}

}  // namespace

// ---- its pidfd and its log

void watch_process(process_table& t, seat& s, process& p) {
    // Processes move from seat::now to seat::gone but stay at the same address, until supervise_seats()
    // erases them (and forgets the fds).
    if (p.pidfd) watch_exit(t, s, p);
    if (p.log.fd() >= 0) watch_log(t, s, p);
}

void watch_log(process_table& t, seat& s, process& p) {
    t.loop->watch(p.log.fd(), EPOLLIN, [&t, &s, &p](u32) {
        if (p.log.drain(*s.log, p.pid)) return;
        t.loop->forget(p.log.fd());
        p.log.close(*s.log, p.pid);
    });
}

void watch_exit(process_table& t, seat& s, process& p) {
    t.loop->watch(p.pidfd.get(), EPOLLIN, [&t, &s, &p](u32) { process_exited(t, s, p); });
}

void watch_tool(process_table& t, process& p) {
    t.loop->watch(p.tool_pidfd.get(), EPOLLIN, [&t, &p](u32) {
        t.loop->forget(p.tool_pidfd.get());
        (void)reap(p.tool_pidfd.get());
        p.tool_pidfd.reset();
    });
}

void process_exited(process_table& t, seat& s, process& p) {
    if (p.ended) return;
    if (&p == s.standby.get()) return standby_ended(t, s, now_ns());
    if (p.pidfd) t.loop->forget(p.pidfd.get());
    p.ended = true;
    p.ended_ns = now_ns();
    const exit_status status = p.pidfd && !p.port ? reap(p.pidfd.get()) : exit_status{};
    if (p.seen_dead_ns == 0) p.seen_dead_ns = p.ended_ns;
    if (status.known && is_doomed(p) && p.incarnation.epoch != 0)
        t.recoveries.report(
            {s.label, p.pid, p.incarnation.epoch, "", 0, 0, 0, 0, false, describe_end(status)});
    if (!p.how.deadline && !p.how.outside && !p.how.restart_requested && status.known &&
        !(p.kill_sent && status.exit_code == exit_code::revoked)) {
        p.how.known = true;
        p.how.exit_code = status.exit_code;
        p.how.signal = status.signal;
        if (p.user_signal != 0 && p.how.signal == p.user_signal) p.how.outside = true;
        note_out_of_memory(t, s, p);
        excuse_process(t, p);
        if (p.mps.excused && p.mps.broke) report_end(t, s, p);  // the process had left no note
    }
    if (p.judged && p.how.known && s.last_exit_pid == p.pid && s.last_exit == death_by_signal_text) {
        s.last_exit = describe(p.how);  // because the kernel has now reported the cause
        t.recoveries.report({s.label, p.pid, p.incarnation.epoch, s.last_exit, 0, 0, 0, 0, false});
    }
    if (!is_doomed(p)) return retire(t, s);
    in_order(t, [&] { poll_retirement(t, s, p, now_ns()); });
}

// ---- its socket

void connection_closed(process_table& t, int connection) {
    for (auto& s : t.seats) {
        for (auto& p : s->gone)
            if (p->connection == connection) p->connection = -1;
        if (s->standby && s->standby->connection == connection) {
            s->standby->connection = -1;
            s->standby->standing_by = false;
            end_standby(*s);
        }
        if (!s->now || s->now->connection != connection) continue;
        s->now->connection = -1;
        s->now->seen_dead_ns = now_ns();
        if (s->now->port)
            s->now->how.outside = true;
        else
            s->now->leaving = !is_exiting(s->now->pid);
        retire(t, *s);
    }
}

void mark_ready(process& p) {
    p.how.was_ready = true;
    if (!p.port) p.start_time = shm::start_time_of(p.pidfd.get(), p.pid);
}

void stage_is_ready(process_table& t, int connection) {
    for (auto& s : t.seats) {
        if (s->standby && s->standby->connection == connection) {
            s->standby->standing_by = true;
            mark_ready(*s->standby);
            s->standby_delay_ns = 0;
        }
        if (!s->now || s->now->connection != connection) continue;
        mark_ready(*s->now);
        s->clock_base_ns = s->now->ready_ns = now_ns();
        const seat_action a = s->machine.on(seat_event::ready, now_ns());
        t.note("ready", now_ns(), *s, *s->now, fmt::format("is ready (pid {})", s->now->pid));
        apply_seat_action(t, *s, a, nullptr);
    }
}

void stage_returned(process_table& t, int connection) {
    for (auto& s : t.seats)
        for (const process* p : {s->now.get(), s->standby.get()})
            if (p != nullptr && p->connection == connection) read_alone(t, *s, p->pid);
}

void port_left(process_table& t, int connection) {
    for (auto& s : t.seats) {
        process* p = s->now && s->now->connection == connection ? s->now.get() : nullptr;
        for (auto& gone : s->gone)
            if (gone->connection == connection) p = gone.get();
        if (p == nullptr || !p->port || p->ended) continue;
        p->has_detached = p->how.outside = true;
        return process_exited(t, *s, *p);
    }
}

// ---- its words and its clocks

void poll_ports(process_table& t, seat& s) {
    const auto check = [&](process& p) {
        if (p.port && !p.pidfd && !p.ended && port_has_ended(t, p)) process_exited(t, s, p);
    };
    for (auto& p : s.gone) check(*p);
    if (s.now) check(*s.now);
}

void read_exit_note(const process_table& t, process& p) noexcept {
    const ring::exit_note note = ring::exit_note::of(ring::load(t.c->entry[p.incarnation.entry].exit_note));
    if (p.how.known || p.how.deadline || p.how.outside || !note.present) return;
    p.how.known = true;
    p.how.outside = note.outside;
    p.how.exit_code = note.exit_code;
    p.how.signal = note.signal;
    if (p.user_signal != 0 && p.how.signal == p.user_signal) p.how.outside = true;
}

void deadline_missed(process_table& t, seat& s, const std::string& what) {
    process& p = *s.now;
    p.by_supervisor = true;
    // A process that was stopped from outside is not at fault, and neither are its frames.
    if (p.port) {
        p.how.deadline = true;
        t.log_line(
            fmt::format("{} (pid {}): {}: its seat now belongs to another process", s.label, p.pid, what));
    } else if (shm::is_stopped(p.pid)) {
        p.how.outside = true;
        p.how.known = true;
        p.how.signal = 19;
        t.log_line(
            fmt::format("{} (pid {}) was stopped by a signal and {}: replacing it", s.label, p.pid, what));
    } else {
        p.how.deadline = true;
        t.log_line(fmt::format("{} (pid {}): {}: replacing it", s.label, p.pid, what));
    }
    retire(t, s);
}

}  // namespace carousel::supervisor
