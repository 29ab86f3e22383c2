// Every event of a process enters here, whatever reports it:
//   its pidfd            it has ended                      process_exited
//   its socket           closed                            connection_closed
//   a message on it      ready, returned, left (a port)    stage_is_ready, stage_returned, port_left
//   a port's lock        free                              poll_port
//   a deadline           missed                            deadline_missed
//   its note in the control block (exit code, fault)       read_exit_note
//   its log pipe         output, end                       watch_log
// The path of a death, in three files:
//   process_events.cpp   detected: the event, and what is known of the cause
//   retire.cpp           its words are taken, its frames requeued, the process fenced and its buffers freed
//   restart.cpp          the death is judged and charged, and a successor is started (start.cpp) or not

#include "supervisor/processes/process_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "frame/frame_format.hpp"
#include "os/spawn.hpp"
#include "ring/exit_notes.hpp"
#include "shm/block_guard.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/port_seats.hpp"
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

/// Returns the stage that writes the link, and the index of the output with which the stage writes it;
/// nothing if no stage of the plan writes the link.
std::optional<ring_place> ring_place_of(const process_table& t, u32 link) {
    if (link >= std::min(t.made->links, shm::max_links)) return std::nullopt;
    const u32 stage = t.made->link[link].stage;
    if (stage >= t.setup->stages.size()) return std::nullopt;
    for (u32 o = 0; o < std::min(t.setup->stages[stage].outputs(), shm::max_outputs); ++o)
        if (t.made->stage[stage].output_link[o] == link) return ring_place{stage, o};
    return std::nullopt;
}

std::string name_of_ring(const process_table& t, u32 link) {
    const auto at = ring_place_of(t, link);
    return at ? t.setup->stages[at->stage].ring_name(at->output) : "";
}

std::string text_of_ring(const process_table& t, const ring::wild_write& to) {
    const auto at = ring_place_of(t, to.index);
    if (!at || to.slot >= std::min(t.made->link[to.index].slots, shm::max_slots)) return "";
    const stage_setup& producer = t.setup->stages[at->stage];
    const char* const what = to.what == ring::wild_write_target::output ? "an overrun of its slot in the ring"
                             : to.what == ring::wild_write_target::input
                                 ? "a write into its input ring"
                                 : "an access beyond a slot of its input ring";
    return fmt::format("{} {}, frame {}, {}", what, producer.ring_name(at->output),
                       ring::load(t.c->frames[to.index].header[to.slot].ring_sequence),
                       place_in_slot(producer.ring(at->output).format, to.offset));
}

std::string text_of_header(const process_table& t, const ring::wild_write& to) {
    const std::string name = name_of_ring(t, to.index);
    if (name.empty()) return "";
    if (to.slot >= std::min(t.made->link[to.index].slots, shm::max_slots))
        return fmt::format("a write after the headers of the ring {}", name);
    return fmt::format("a write into the headers of the ring {}, frame {}, offset {}", name,
                       ring::load(t.c->frames[to.index].header[to.slot].ring_sequence), to.offset);
}

/// Returns the owner's name. The name is taken from the run's own plan, because the place was stored by a
/// process that had just made a wild write.
std::string text_of_owner(const process_table& t, shm::block_part part, u32 index) {
    const auto stage = [&](u32 k) { return k < t.setup->stages.size() ? t.setup->stages[k].spec.name : ""; };
    switch (part) {
        case shm::block_part::stage:
        case shm::block_part::doorbell:
        case shm::block_part::telemetry:
            return stage(index);
        case shm::block_part::seat:
        case shm::block_part::seat_asked:
            return index < t.seats.size() ? t.seats[index]->label : "";
        case shm::block_part::ring:
        case shm::block_part::ring_words:
            return name_of_ring(t, index);
        case shm::block_part::source:
        case shm::block_part::numbers:
            return index < std::min(t.made->sources, shm::max_sources) ? stage(t.made->source[index].stage)
                                                                       : "";
        case shm::block_part::asset:
            return index < t.setup->assets.size() ? t.setup->assets[index].name : "";
        case shm::block_part::entry:
        case shm::block_part::events: {
            if (index >= shm::max_incarnations) return "";
            const auto w = ring::entry_word::of(ring::load(t.c->entry[index].identity));
            const bool is = w.state != ring::entry_state::unused && w.seat < t.seats.size();
            return is ? t.seats[w.seat]->label : "";
        }
        default:
            return "";
    }
}

struct part_text {
    shm::block_part part;
    const char* text;   ///< the owner's name follows
    const char* spare;  ///< the text that is printed if the run does not use this row
};
constexpr part_text part_texts[] = {
    {shm::block_part::head, "the head of the control block", ""},
    {shm::block_part::pace, "the time of the next frame", ""},
    {shm::block_part::parameters, "the parameters", ""},
    {shm::block_part::stage, "the description of stage ", "an unused stage's description"},
    {shm::block_part::doorbell, "the doorbell of ", "an unused stage's doorbell"},
    {shm::block_part::telemetry, "the telemetry of ", "an unused stage's telemetry"},
    {shm::block_part::seat, "the seat of ", "an unused seat"},
    {shm::block_part::seat_asked, "the requests to ", "the requests to an unused seat"},
    {shm::block_part::ring, "the description of ring ", "an unused ring's description"},
    {shm::block_part::ring_words, "the words of ring ", "an unused ring's words"},
    {shm::block_part::source, "the description of source ", "an unused source's description"},
    {shm::block_part::numbers, "the numbers of source ", "an unused source's numbers"},
    {shm::block_part::asset, "the state of asset ", "an unused asset's state"},
    {shm::block_part::turn, "the token of a GPU", ""},
    {shm::block_part::jobs, "the job words", ""},
    {shm::block_part::job_records, "the records of jobs", ""},
    {shm::block_part::entry, "the entry of ", "an unused entry"},
    {shm::block_part::events, "the event handles of ", "an unused entry's event handles"},
};

std::string text_of_block(const process_table& t, const ring::wild_write& to) {
    for (const part_text& row : part_texts) {
        if (static_cast<u32>(row.part) != to.index) continue;
        const std::string owner = text_of_owner(t, row.part, to.slot);
        const bool spare = owner.empty() && *row.spare != '\0';
        return fmt::format("a write into the control block: {}, offset {}",
                           spare ? row.spare : row.text + owner, to.offset);
    }
    return "";
}

// CUDA errors contain no address, so the ring, the plane and the offset are not known.
std::string text_of_device(const ring::wild_write& to) {
    if (to.index <= 1)
        return fmt::format("an illegal address, with only frame {} in flight (a GPU reports no address)",
                           to.offset);
    return fmt::format(
        "an illegal address, with {} frames in flight, the oldest {} and the newest {} (a GPU reports no "
        "address)",
        to.index, to.offset, to.offset + to.slot);
}

/// Found by the canary.
bool found_late(const process& p) {
    return p.how.signal == 0 && p.how.exit_code == exit_code::stage_exception;
}

}  // namespace

// ---- the pidfd and the log of a process

void watch_process(process_table& t, seat& s, process& p) {
    // The handlers keep references to the process object. This is safe, because the object's address stays
    // the same when the object moves from seat::now to seat::gone, and because supervise_seats() forgets the
    // fds when it erases the object.
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
        // not reported before, because the process had left no note
        if (p.mps.excused && p.mps.broke) report_end(t, s, p);
    }
    if (p.judged && p.how.known && s.last_exit_pid == p.pid && s.last_exit == death_by_signal_text) {
        s.last_exit = describe(p.how);  // the kernel has now reported the cause
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
            s->standby->standing_by = !s->standby->kill_sent;
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

// ---- the words and the clocks of a process

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
    (void)end_client_with_domain(t, s, what);
}

std::string place_in_slot(const nlohmann::json& format, u64 offset) {
    std::string name = "the status word";
    u64 begin = 0;
    try {
        ring::frame_format f = ring::frame_format::from_json(format.dump());
        (void)f.lay_out();
        for (const ring::plane& p : f.planes) {
            if (p.offset > offset || p.offset < begin) continue;
            begin = p.offset;
            name = (offset - begin < p.bytes() ? "plane " : "after plane ") + p.name;
        }
    } catch (const error&) {
        name = "the slot";  // without a plane, the offset in the slot is printed
    }
    return fmt::format("{}, offset {}", name, offset - begin);
}

std::string wild_write_text(const process_table& t, const process& p) {
    if (p.incarnation.entry >= shm::max_incarnations || p.mps.excused || p.mps.with_domain) return "";
    const ring::wild_write to = ring::wild_write::of(ring::load(t.c->entry[p.incarnation.entry].wild_write));
    switch (to.what) {
        case ring::wild_write_target::input:
        case ring::wild_write_target::after_input:
            return p.how.signal == SIGSEGV ? text_of_ring(t, to) : "";
        case ring::wild_write_target::output:
            return p.how.signal == SIGSEGV || found_late(p) ? text_of_ring(t, to) : "";
        case ring::wild_write_target::header:
            return p.how.signal == SIGSEGV ? text_of_header(t, to) : "";
        case ring::wild_write_target::block:
            return p.how.signal == SIGSEGV ? text_of_block(t, to) : "";
        case ring::wild_write_target::asset:
            if (to.index >= t.setup->assets.size() || p.how.signal != SIGSEGV) return "";
            return fmt::format("a write into the asset {}, offset {}", t.setup->assets[to.index].name,
                               to.offset);
        case ring::wild_write_target::device:
            if (p.how.signal != 0 || p.how.exit_code != exit_code::gpu_fault) return "";
            return text_of_device(to);
        case ring::wild_write_target::nothing:
            return "";
    }
    return "";
}

}  // namespace carousel::supervisor
