#include "supervisor/processes/port_seats.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "ring/recovery.hpp"
#include "ring/words.hpp"
#include "run/directory.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/process_events.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/start.hpp"

namespace carousel::supervisor {
namespace {

std::string lock_of(const process_table& t, const process& p) {
    return run::port_lock(t.setup->directory, p.incarnation.seat, p.incarnation.epoch);
}

std::string no_such_port(const process_table& t, const std::string& name) {
    std::vector<std::string> names, listed;
    for (const auto& s : t.seats) {
        if (!is_port(t, *s)) continue;
        names.push_back(s->label);
        listed.push_back(fmt::format("{} ({})", s->label,
                                     t.setup->stages[s->stage].spec.inputs.empty() ? "writer" : "reader"));
    }
    const bool stage = std::any_of(t.seats.begin(), t.seats.end(), [&](const auto& s) {
        return t.setup->stages[s->stage].spec.name == name;
    });
    const std::string what =
        stage ? fmt::format("\"{}\" is a stage of {} with its own program, not a port", name, t.setup->name)
              : fmt::format("the pipeline {} has no port \"{}\"{}", t.setup->name, name,
                            did_you_mean_clause(name, names));
    return names.empty() ? what + "; its file has no port (run = \"port\")"
                         : fmt::format("{}; its ports are: {}", what, fmt::join(listed, ", "));
}

/// Returns "", or the reason why the seat cannot be taken now.
std::string occupied(const seat& s, bool& again) {
    again = true;
    if (s.now)
        return fmt::format("port {} already has a program (pid {}{}): only one at a time can use a port",
                           s.label, s.now->pid, s.now->elsewhere ? " in another namespace" : "");
    switch (s.machine.state()) {
        case seat_state::vacant:
            return "";
        case seat_state::down:
            return fmt::format("port {} is down (`carousel up {}` opens it)", s.label, s.label);
        case seat_state::done:
            again = false;
            return fmt::format("all frames of the run have passed port {}", s.label);
        default:
            return fmt::format("port {} is {}: try again", s.label, name_of(s.machine.state()));
    }
}

/// Identifies the process of a connection, by the kernel's credentials if available.
std::string watch_program(process& p, shm::peer_process peer, const run::hello_message& hello,
                          std::vector<shm::unique_fd>& fds) {
    p.elsewhere = peer.id.pid == 0;
    p.pid = p.elsewhere ? std::max(1, hello.pid) : peer.id.pid;
    p.pidfd = std::move(peer.pidfd);
    if (!p.pidfd && p.elsewhere && !fds.empty()) p.pidfd = std::move(fds.front());
    if (p.pidfd) return "";
    return p.elsewhere ? "a program in another pid namespace must send its own pidfd, and none was received "
                         "(Linux 5.3 or newer)"
                       : fmt::format("process {} can't be watched: it has ended", p.pid);
}

/// Uses the supervisor's own copy of the block.
template <typename F>
void for_each_blocking_group(const process_table& t, u32 stage, F&& fn) noexcept {
    const shm::stage_block& b = t.made->stage[stage];
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i)
        if (b.input_link[i] < shm::max_links && b.input_group[i] < shm::max_blocking)
            fn(b.input_link[i], b.input_group[i]);
}

/// Returns nothing if the word is damaged. A damaged word is repaired before the next tick, or the block is
/// rebuilt.
std::optional<u64> tail_of(const process_table& t, u32 link) noexcept {
    const u64 raw = ring::load(t.c->link[link].tail.raw());
    if (!ring::intact(raw)) return std::nullopt;
    return shm::tail_word::unpack(raw);
}

/// Returns the lowest tail of the rings that the stage reads: every frame below this tail has left all these
/// rings. Returns nothing if a tail is damaged.
std::optional<u64> lowest_tail(const process_table& t, u32 stage) noexcept {
    std::optional<u64> lowest = ~u64{0};
    for_each_blocking_group(t, stage, [&](u32 link, u32) {
        const std::optional<u64> tail = tail_of(t, link);
        lowest = lowest && tail ? std::optional(std::min(*lowest, *tail)) : std::nullopt;
    });
    return lowest == ~u64{0} ? 0 : lowest;
}

/// Returns a number above those of all frames that were READY in one of the rings that the stage reads.
/// Returns nothing if a word is damaged.
std::optional<u64> first_not_ready(const process_table& t, u32 stage) noexcept {
    std::optional<u64> first = 0;
    for_each_blocking_group(t, stage, [&](u32 link, u32) {
        const std::optional<u64> of_ring = ring::first_not_ready(*t.c, link);
        first = first && of_ring ? std::optional(std::max(*first, *of_ring)) : std::nullopt;
    });
    return first;
}

/// Returns false if the word of a group is damaged, or if another process has just changed it.
bool open_groups(const process_table& t, u32 stage) noexcept {
    bool open = true;
    for_each_blocking_group(t, stage,
                            [&](u32 link, u32 group) { open = ring::open_group(*t.c, link, group) && open; });
    return open;
}

}  // namespace

bool is_port(const process_table& t, const seat& s) noexcept {
    return t.setup->stages[s.stage].spec.is_port();
}

std::string seat_port(process_table& t, shm::peer_process peer, const run::hello_message& hello,
                      std::vector<shm::unique_fd>& fds, bool& again, seat*& in) {
    again = true;
    if (t.paused) return "the run is restarting: try again";
    if (!t.memory_there) return "the run is being taken over by a second supervisor: try again";
    again = false;
    if (t.ending) return "the run is ending";
    const auto at = std::find_if(t.seats.begin(), t.seats.end(),
                                 [&](const auto& s) { return is_port(t, *s) && s->label == hello.stage; });
    if (at == t.seats.end()) return no_such_port(t, hello.stage);
    seat& s = **at;
    if (t.setup->stages[s.stage].spec.inputs.empty() != hello.writes)
        return fmt::format("port {0} is for a {1}: open it with {1}(\"{0}\")", s.label,
                           hello.writes ? "reader" : "writer");
    if (std::string why = occupied(s, again); !why.empty()) return why;
    if (!s.successor) s.successor = ring::appoint(*t.c, s.index);
    if (!s.successor) return "too many processes of this run have not ended yet: try again";
    // passes the seat's words on to its first process: the IDLE words of a fresh block have epoch 0
    ring::revoke(*t.c, s.index, 0);
    auto p = std::make_unique<process>();
    p->incarnation = s.successor;
    p->port = true;
    p->spawned_ns = now_ns();
    if (std::string why = watch_program(*p, std::move(peer), hello, fds); !why.empty())
        return again = false, why;
    s.successor = {};
    s.clock_base_ns = p->spawned_ns;
    s.restarts += s.pids.empty() ? 0 : 1;
    s.remember(p->pid);
    s.now = std::move(p);
    s.machine.on(seat_event::spawned, now_ns());
    watch_process(t, s, *s.now);
    if (t.setup->stages[s.stage].spec.skips()) await_again(t, s.stage);
    t.note("started", s.now->spawned_ns, s, *s.now,
           fmt::format("is opened by pid {}{}", s.now->pid, s.now->elsewhere ? " in another namespace" : ""));
    in = &s;
    return "";
}

bool port_has_ended(const process_table& t, const process& p) {
    const shm::unique_fd lock(::open(lock_of(t, p).c_str(), O_RDWR | O_CLOEXEC));
    if (!lock) return errno == ENOENT;
    return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_port_lock(const process_table& t, const process& p) noexcept try {
    ::unlink(lock_of(t, p).c_str());
} catch (const std::exception&) {  // if memory ran out, the file remains until the folder is removed
}

std::string describe_port_end(const process& p) {
    if (p.how.restart_requested) return "asked to leave, because the run restarts";
    return p.has_detached ? "left" : p.how.deadline || p.how.known ? describe(p.how) : "gone";
}

void require_no_port(const process_table& t, const seat& s, const char* command) {
    if (!is_port(t, s)) return;
    throw config_error(
        fmt::format("{0} is a port: `{1}` is only for processes of the run, but the program at a port is not "
                    "one of them (`carousel down {0}` takes the port from it)",
                    s.label, command));
}

bool is_absent(const run_setup& setup, const seat_list& seats, u32 stage) {
    const stage_spec& spec = setup.stages[stage].spec;
    if (!spec.skips() && !spec.optional) return false;
    return std::all_of(seats.begin(), seats.end(), [&](const auto& s) {
        return s->stage != stage || (spec.skips() ? !s->now : s->machine.state() == seat_state::failed);
    });
}

// The rings wait for the stage until its claims on disk are suspended; if they did not wait that long, a
// sender would keep frames for the stage, and the report would count losses that did not occur.
void skip_frames(process_table& t, u32 stage) {
    const stage_setup& st = t.setup->stages[stage];
    if (st.spec.optional && !t.ledgers.claim_suspended(stage)) {
        const std::optional<u64> first = lowest_tail(t, stage);
        if (!first) return;
        if (const std::string why = t.ledgers.suspend_claim(stage, *first); !why.empty()) t.log_line(why);
        if (!t.ledgers.claim_suspended(stage)) return;
    }
    bool closed = false;
    for_each_blocking_group(t, stage,
                            [&](u32 link, u32 group) { closed |= ring::close_group(*t.c, link, group); });
    if (closed && st.spec.skips())
        t.log_line(fmt::format("port {} has no program: frames skip it", st.spec.name));
}

void await_again(process_table& t, u32 stage) {
    if (!open_groups(t, stage)) return;  // frames still bypass the stage: the claim stays suspended
    const stage_setup& st = t.setup->stages[stage];
    if (!st.spec.optional || !counts_frames(st) || !t.ledgers.claim_suspended(stage)) return;
    // A process that has read CLOSED lets frames bypass the group, but only frames that were READY before the
    // group was opened, so their numbers are lower. A higher number would leave out frames that no sink has a
    // claim on, and a rebuild would begin after them although their source, which may be later than another
    // source, has not made them.
    const std::optional<u64> first = first_not_ready(t, stage);
    if (!first) return;  // a word is damaged
    if (const std::string why = t.ledgers.resume_claim(stage, *first); !why.empty()) t.log_line(why);
    if (t.ledgers.claim_suspended(stage)) return;
    t.log_line(
        fmt::format("{} is back: it gets every frame from {} on; earlier frames that arrived while it was "
                    "skipped are not repeated",
                    st.spec.name, *first));
}

void settle_absent_readers(process_table& t) {
    if (t.paused || !t.memory_there || t.failure) return;
    for (u32 k = 0; k < t.setup->stages.size(); ++k) {
        const stage_spec& spec = t.setup->stages[k].spec;
        if (!spec.skips() && !spec.optional) continue;
        if (is_absent(*t.setup, t.seats, k))
            skip_frames(t, k);
        else
            await_again(t, k);
    }
}

}  // namespace carousel::supervisor
