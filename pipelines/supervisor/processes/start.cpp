// After a death the successor is appointed, and is spawned as soon as it owns the words; it does not wait for
// the end of its predecessor.
#include "supervisor/processes/start.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "os/descriptors.hpp"
#include "os/spawn.hpp"
#include "shm/process_id.hpp"
#include "spec/programs.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "supervisor/processes/process_events.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/start_over.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 short_delay_ns = 500 * ns_per_ms;

}  // namespace

void start_all(process_table& t) {
    for (auto& s : t.seats) {
        if (s->machine.state() == seat_state::down) s->machine.on(seat_event::bring_up, now_ns());
        s->start_wanted = true;
        s->due_ns = 0;
        start_seat(t, *s);
    }
}

// Starts the stage's program for the entry that p.incarnation names. Throws carousel::error.
void spawn_process(const process_table& t, const seat& s, process& p) {
    const stage_setup& st = t.setup->stages[s.stage];
    spawn_request r;
    r.argv = st.spec.prefix;
    for (std::string& word : command_of(st.program_of(s.instance), st.python))
        r.argv.push_back(std::move(word));
    r.environment = {"CAROUSEL_STAGE=" + t.setup->stages[s.stage].spec.name,
                     fmt::format("CAROUSEL_ATTACH={} {} {} {}", t.setup->directory, p.incarnation.seat,
                                 p.incarnation.entry, p.incarnation.epoch),
                     "CUDA_MODULE_LOADING=EAGER"};
    p.mps.generation = generation_for(t, s, p.incarnation.epoch == 0);
    if (p.mps.generation != 0)
        for (std::string& word : t.domain->client_environment(p.mps.generation))
            r.environment.push_back(std::move(word));
    p.on_gpu = is_gpu(st.device_of(s.instance));
    p.tool = !st.spec.prefix.empty();
    r.interactive = p.tool && isatty(STDIN_FILENO) != 0;
    shm::unique_fd output;
    if (!r.interactive) {
        p.log = log_pipe::make(output);
        r.output = output.get();
    }
    spawned child = spawn(r);
    raise_oom_score(child.pid);
    crash_here(crash_point::stage_spawned);
    p.pid = child.pid;
    p.group = r.interactive ? 0 : child.pid;
    p.pidfd = std::move(child.pidfd);
}

void postpone_start(process_table& t, seat& s, const std::string& why) {
    if (s.shortage.empty()) t.log_line(fmt::format("{} can't be started yet: {}", s.label, why));
    s.shortage = fmt::format("{}: {}", s.label, why);
    s.start_short = s.start_wanted = true;
    s.due_ns = now_ns() + short_delay_ns;
}

void start_seat(process_table& t, seat& s) {
    if (s.now) {  // a standby already has the seat: no other process is started
        s.start_wanted = false;
        if (s.now->how.was_ready) apply_seat_action(t, s, s.machine.on(seat_event::ready, now_ns()), nullptr);
        return;
    }
    if (t.ending || t.paused || !t.memory_there || !may_start(t, s)) return;
    // A rebuild may start a seat before its delay is over. A seat in backoff would ignore its process.
    if (s.machine.state() == seat_state::backoff) s.machine.on(seat_event::due, now_ns());
    if (is_port(t, s)) {
        s.start_wanted = false;
        s.machine.on(seat_event::vacated, now_ns());
        return;
    }
    const bool first = s.pids.empty() || !s.successor;
    if (!s.successor) s.successor = ring::appoint(*t.c, s.index);
    if (!s.successor) return;  // every entry belongs to an unfenced process, so the next tick tries again
    // passes the words on: IDLE words of a fresh block have epoch 0
    if (first) ring::revoke(*t.c, s.index, 0);
    const stage_setup& st = t.setup->stages[s.stage];
    s.start_wanted = false;
    std::unique_ptr<process> p = take_detached(t, s);
    const bool starts_over = p != nullptr;
    if (!starts_over) p = std::make_unique<process>();
    p->incarnation = s.successor;
    p->spawned_ns = now_ns();
    try {
        if (!starts_over) spawn_process(t, s, *p);
        // a shortage is not the stage's fault, so the start is repeated and not counted
    } catch (const out_of_resources& e) {
        return postpone_start(t, s, e.what());
    } catch (const error& e) {
        t.log_line(fmt::format("{}: {}", s.label, e.what()));
        s.last_exit = "not started";
        death d;
        d.known = true;
        d.exit_code = 127;
        apply_seat_action(t, s, s.machine.on(classify(d, st.spec.restart), now_ns()), nullptr);
        return;
    }
    s.successor = {};
    s.start_short = false;
    s.clock_base_ns = p->spawned_ns;
    if (!s.pids.empty()) {
        ++s.restarts;
        ++t.account.restarts;
    }
    s.remember(p->pid);
    s.now = std::move(p);
    s.by_standby = false;
    t.note("started", s.now->spawned_ns, s, *s.now,
           fmt::format("{} as pid {}", starts_over ? "starts over" : "starts", s.now->pid));
    if (starts_over)
        answer_detached(t, s);  // it is watched already
    else
        watch_process(t, s, *s.now);
}

std::string adopt_process(process_table& t, seat& s, process& p, shm::peer_process peer) {
    if (peer.id.pid == p.pid)
        return "";  // the process is an unreaped child, so the pid cannot have been
                    // reused
    if (peer.id.pid == 0 || !peer.pidfd)
        return fmt::format("process {} can't be watched: it has ended, or is in another pid namespace",
                           peer.id.pid);
    // the process that this supervisor has spawned is the tool that started the stage; it ends after the
    // stage, and is then reaped
    if (p.pidfd) {
        t.loop->forget(p.pidfd.get());
        p.tool_pidfd = std::move(p.pidfd);
        watch_tool(t, p);
    }
    p.pidfd = std::move(peer.pidfd);
    p.pid = peer.id.pid;
    s.remember(p.pid);
    watch_exit(t, s, p);
    return "";
}

void memory_is_there(process_table& t) {
    t.memory_there = true;
    for (auto& s : t.seats)
        if (s->start_wanted && now_ns() >= s->due_ns) start_seat(t, *s);
}

}  // namespace carousel::supervisor
